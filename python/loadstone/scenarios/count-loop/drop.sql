do language plpgsql $$ begin execute format('drop function if exists %I.query_table_count_loop()', current_schema()); end $$;
