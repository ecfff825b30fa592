drop table if exists loadstone.recovery_rows;
