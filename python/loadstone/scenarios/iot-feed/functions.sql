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
