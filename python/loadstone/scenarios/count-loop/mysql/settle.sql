analyze table loadstone.table_{{ table }}
