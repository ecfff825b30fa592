drop tablespace if exists loadstone_feed;
{% if storage_path %}
create tablespace loadstone_feed location {{ storage_path | literal }};
{% endif %}
