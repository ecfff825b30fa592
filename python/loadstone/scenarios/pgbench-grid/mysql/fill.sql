-- A branch's accounts a statement: a stop need not wait for all of them.
{% set digits = "(select 0 as d union all select 1 union all select 2 union all select 3 union all select 4 union all select 5 union all select 6 union all select 7 union all select 8 union all select 9)" %}
{% for branch in range(scale) %}
insert into loadstone.pgbench_accounts (aid, bid, abalance, filler)
select {{ branch * 100000 + 1 }} + a.d * 10000 + b.d * 1000 + c.d * 100 + e.d * 10 + f.d, {{ branch + 1 }}, 0, ''
from {{ digits }} as a cross join {{ digits }} as b cross join {{ digits }} as c cross join {{ digits }} as e cross join {{ digits }} as f
where not @filled
order by 1;
insert into loadstone.pgbench_branches (bid, bbalance)
select {{ branch + 1 }}, 0 from {{ digits }} as a where a.d = 0 and not @filled;
insert into loadstone.pgbench_tellers (tid, bid, tbalance)
select {{ branch * 10 + 1 }} + a.d, {{ branch + 1 }}, 0 from {{ digits }} as a where not @filled;
{% endfor %}
alter table loadstone.pgbench_accounts comment = 'made by Loadstone: scale {{ scale }}';
