{% if storage_path %}
drop tablespace if exists loadstone_feed;
create tablespace loadstone_feed location {{ storage_path | literal }};
comment on tablespace loadstone_feed is 'made by Loadstone';
{% endif %}
