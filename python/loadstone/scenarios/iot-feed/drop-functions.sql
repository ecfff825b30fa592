drop function loadstone_drop_feed(int);
drop function ins_batch(int, int);
drop function ins(int);
{% if storage_path %}
drop tablespace loadstone_feed;
{% endif %}
