-- Only what is ours: what somebody else has put into the schema stays.
do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'loadstone' and c.relkind = 'r'
    and c.relname in ('user_info', 'user_session', 'user_login_rec', 'user_logout_rec', 'sbtest', 'sbtest1')
    and obj_description(c.oid, 'pg_class') = 'made by Loadstone'
  loop
    execute format('drop table loadstone.%I', name);
  end loop;
end;
$$;
drop function if exists loadstone.f_user_logout(integer);
drop function if exists loadstone.oltp_test(int, int);
