create or replace function loadstone.ins_batch(int, int) returns void as $$
declare
begin
execute 'insert into loadstone.feed'||$1||' select id , 0.1 from generate_series(1,'||$2||') t(id)';
end;
$$ language plpgsql strict;

create or replace function loadstone.ins(int) returns void as $$
declare
begin
execute 'insert into loadstone.feed'||$1||' values (1, 0.1)';
end;
$$ language plpgsql strict;

-- Tables of these names that are not ours stay: creating ours then fails, and nobody loses data.
create or replace function loadstone.loadstone_drop_feed(at_most int) returns void as $$
declare
  name text;
begin
  for name in
    select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'loadstone' and c.relkind = 'r'
    and c.relname ~ '^feed[0-9]*$' and obj_description(c.oid, 'pg_class') = 'made by Loadstone'
    limit at_most
  loop
    execute format('drop table loadstone.%I', name);
  end loop;
end;
$$ language plpgsql strict;
