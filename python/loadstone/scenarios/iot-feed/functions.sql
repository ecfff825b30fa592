create or replace function ins_batch(int, int) returns void as $$
declare
begin
execute 'insert into feed'||$1||' select id , 0.1 from generate_series(1,'||$2||') t(id)';
end;
$$ language plpgsql strict;

create or replace function ins(int) returns void as $$
declare
begin
execute 'insert into feed'||$1||' values (1, 0.1)';
end;
$$ language plpgsql strict;

-- Tables of these names that are not ours stay: creating ours then fails, and nobody loses data.
create or replace function loadstone_drop_feed(at_most int) returns void as $$
declare
  name text;
begin
  for name in
    select c.oid::regclass::text from pg_class c
    where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind = 'r'
    and c.relname ~ '^feed[0-9]*$' and obj_description(c.oid, 'pg_class') = 'made by Loadstone'
    limit at_most
  loop
    execute 'drop table ' || name;
  end loop;
end;
$$ language plpgsql strict;
