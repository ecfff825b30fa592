vacuum analyze loadstone.table_{{ table }}
