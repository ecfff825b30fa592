-- A list of values, not a chain of UNION ALL: the query stays flat, whatever the number of tables.
select sum(rows)::bigint from (values
{% for i in range(1, tables + 1) %}
((select count(*) from loadstone.feed{{ i }})){{ "," if not loop.last }}
{% endfor %}
) as counted (rows);
