-- Only what is ours and lies in the schema we work in: a table of the same name elsewhere on the search path stays.
do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind = 'r'
    and c.relname in ('user_info', 'user_session', 'user_login_rec', 'user_logout_rec', 'sbtest')
    and obj_description(c.oid, 'pg_class') = 'made by Loadstone'
  loop
    execute 'drop table ' || name;
  end loop;
  execute format('drop function if exists %I.f_user_logout(integer)', current_schema());
  execute format('drop function if exists %I.oltp_test(int, int)', current_schema());
end;
$$;
