drop function if exists loadstone.loadstone_drop_feed(int);
drop function if exists loadstone.ins_batch(int, int);
drop function if exists loadstone.ins(int);
{% if storage_path %}
drop tablespace if exists loadstone_feed;
{% endif %}
