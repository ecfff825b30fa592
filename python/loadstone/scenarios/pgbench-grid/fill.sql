-- A million accounts a statement: a stop need not wait for all of them.
{% for first in range(0, scale, 10) %}
insert into loadstone.pgbench_accounts (aid, bid, abalance, filler)
select aid, (aid - 1) / 100000 + 1, 0, '' from generate_series({{ first * 100000 + 1 }}, {{ [first + 10, scale] | min * 100000 }}) as aid
where obj_description('loadstone.pgbench_accounts'::regclass, 'pg_class') = 'made by Loadstone';
{% endfor %}
do language plpgsql $$
begin
  if obj_description('loadstone.pgbench_accounts'::regclass, 'pg_class') = 'made by Loadstone' then
    insert into loadstone.pgbench_branches (bid, bbalance) select bid, 0 from generate_series(1, {{ scale }}) as bid;
    insert into loadstone.pgbench_tellers (tid, bid, tbalance)
    select tid, (tid - 1) / 10 + 1, 0 from generate_series(1, {{ scale * 10 }}) as tid;
    alter table loadstone.pgbench_branches add primary key (bid);
    alter table loadstone.pgbench_tellers add primary key (tid);
    alter table loadstone.pgbench_accounts add primary key (aid);
    comment on table loadstone.pgbench_accounts is 'made by Loadstone: scale {{ scale }}';
  end if;
end;
$$;
