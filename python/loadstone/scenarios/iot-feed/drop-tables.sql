-- In several transactions: each table dropped takes about five locks, and max_locks_per_transaction bounds their sum.
{% for first in range(0, tables + 1, 250) %}
select loadstone.loadstone_drop_feed(250);
{% endfor %}
