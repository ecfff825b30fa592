{{ 'vacuum analyze' if vacuum else 'analyze' }} loadstone.table_{{ table }}
