do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'loadstone' and c.relkind = 'r'
    and c.relname in ('pgbench_accounts', 'pgbench_branches', 'pgbench_tellers', 'pgbench_history')
    and obj_description(c.oid, 'pg_class') like 'made by Loadstone%'
  loop
    execute format('drop table loadstone.%I', name);
  end loop;
end;
$$;
