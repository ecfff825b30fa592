{% for first in range(1, tables + 1, 250) %}
do language plpgsql $$
declare
begin
for i in {{ first }}..{{ [first + 249, tables] | min }} loop
execute 'create table feed'||i||' (like feed including all)
{%- if storage_path %} tablespace loadstone_feed{% endif %}';
execute 'comment on table feed'||i||' is ''made by Loadstone''';
end loop;
end;
$$;
{% endfor %}
