-- Tables of these names that are not ours stop the run here: nobody loses data.
do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind <> 'i'
    and c.relname in ('user_info', 'user_session', 'user_login_rec', 'user_logout_rec', 'sbtest')
    and obj_description(c.oid, 'pg_class') is distinct from 'made by Loadstone'
  loop
    raise exception 'the table % was not made by Loadstone', name
      using hint = 'Point Loadstone at another database, or rename the table.';
  end loop;
end;
$$;
