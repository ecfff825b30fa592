create or replace function loadstone.query_table_count_loop() returns void as $$
declare
  i int := 1;
begin
  while i <= {{ counts_per_call }} loop
    raise notice 'Iteration: %, Table Count: %', i, (select count(*) from loadstone.table_{{ table }});
    i := i + 1;
  end loop;
end;
$$ language plpgsql;
alter function loadstone.query_table_count_loop() set max_parallel_workers_per_gather = {{ parallel }};
