{% for first in range(1, tables + 1, 250) %}
do language plpgsql $$
declare
begin
for i in {{ first }}..{{ [first + 249, tables] | min }} loop
execute 'create table loadstone.feed'||i||' (like loadstone.feed including all)
{%- if storage_path %} tablespace loadstone_feed{% endif %}';
execute 'comment on table loadstone.feed'||i||' is ''made by Loadstone''';
end loop;
end;
$$;
{% endfor %}
