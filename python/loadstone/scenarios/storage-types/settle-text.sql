vacuum analyze loadstone.table_text
