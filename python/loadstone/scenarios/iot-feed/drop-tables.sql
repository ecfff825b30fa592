-- In several transactions: each table dropped takes about five locks, and max_locks_per_transaction bounds their sum.
{% for first in range(1, tables + 1, 250) %}
select loadstone_drop_feed(250);
{% endfor %}
-- An earlier run may have made more tables.
select loadstone_drop_feed(1000000);
