-- Cells of one scale share its tables: they are filled once, and a fill that did not come to its end counts for none.
do language plpgsql $$
declare
  accounts regclass := to_regclass('loadstone.pgbench_accounts');
  name text;
begin
  if obj_description(accounts, 'pg_class') = 'made by Loadstone: scale {{ scale }}' then
    return;
  end if;
  for name in
    select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'loadstone' and c.relkind = 'r'
    and c.relname in ('pgbench_accounts', 'pgbench_branches', 'pgbench_tellers', 'pgbench_history')
    and obj_description(c.oid, 'pg_class') like 'made by Loadstone%'
  loop
    execute format('drop table loadstone.%I', name);
  end loop;
  create table loadstone.pgbench_branches (bid int not null, bbalance int, filler char(88)) with (fillfactor = 100);
  create table loadstone.pgbench_tellers (tid int not null, bid int, tbalance int, filler char(84)) with (fillfactor = 100);
  create table loadstone.pgbench_accounts (aid int not null, bid int, abalance int, filler char(84)) with (fillfactor = 100);
  create table loadstone.pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
  comment on table loadstone.pgbench_branches is 'made by Loadstone';
  comment on table loadstone.pgbench_tellers is 'made by Loadstone';
  comment on table loadstone.pgbench_accounts is 'made by Loadstone';
  comment on table loadstone.pgbench_history is 'made by Loadstone';
end;
$$;
