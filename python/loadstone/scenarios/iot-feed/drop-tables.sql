-- Whatever number of tables an earlier run made. Tables of these names that are not ours stay: creating ours then fails.
do language plpgsql $$
declare
  name text;
begin
  for name in
    select c.oid::regclass::text from pg_class c
    where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relname ~ '^feed[0-9]*$' and c.relkind = 'r'
    and obj_description(c.oid, 'pg_class') = 'made by Loadstone'
  loop
    execute 'drop table ' || name;
  end loop;
end;
$$;
