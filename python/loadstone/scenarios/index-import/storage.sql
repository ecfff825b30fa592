{% if storage_path %}
drop tablespace if exists loadstone_import;
create tablespace loadstone_import location {{ storage_path | literal }};
{% endif %}
