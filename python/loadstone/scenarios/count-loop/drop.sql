drop function if exists loadstone.query_table_count_loop();
