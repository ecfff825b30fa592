-- What a run that did not come to its end left behind: it may have made more tables than this one will.
{% for first in range(0, [tables, 10000] | max, 250) %}
select loadstone.loadstone_drop_feed(250);
{% endfor %}
