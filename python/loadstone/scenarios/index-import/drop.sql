{% if storage_path %}
do language plpgsql $$ begin execute format('drop table if exists %I.test', current_schema()); end $$;
drop tablespace if exists loadstone_import;
{% endif %}
