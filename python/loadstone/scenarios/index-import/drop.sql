{% if storage_path %}
drop table if exists loadstone.test;
drop tablespace if exists loadstone_import;
{% endif %}
