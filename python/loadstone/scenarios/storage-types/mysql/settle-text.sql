analyze table loadstone.table_text
