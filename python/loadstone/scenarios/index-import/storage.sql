{% if storage_path %}
drop tablespace if exists loadstone_import;
create tablespace loadstone_import location {{ storage_path | literal }};
comment on tablespace loadstone_import is 'made by Loadstone';
{% endif %}
