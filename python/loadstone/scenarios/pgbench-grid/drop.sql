do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind = 'r'
    and c.relname in ('pgbench_accounts', 'pgbench_branches', 'pgbench_tellers', 'pgbench_history')
    and obj_description(c.oid, 'pg_class') like 'made by Loadstone%'
  loop
    execute 'drop table ' || name;
  end loop;
end;
$$;
