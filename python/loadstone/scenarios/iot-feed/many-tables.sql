do language plpgsql $$
declare
begin
for i in 1..{{ tables }} loop
execute 'create table feed'||i||' (like feed including all)
{%- if storage_path %} tablespace loadstone_feed{% endif %}';
end loop;
end;
$$;
