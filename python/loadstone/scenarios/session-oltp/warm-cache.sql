-- The extension may be in any schema: whoever made it chose one.
create extension if not exists pg_prewarm;
do language plpgsql $$
declare
  place text := (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_prewarm');
begin
  execute format('select %I.pg_prewarm(%L)', place, 'loadstone.pk_user_session');
  execute format('select %I.pg_prewarm(%L)', place, 'loadstone.user_session');
end;
$$;
