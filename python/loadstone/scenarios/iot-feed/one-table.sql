create table loadstone.feed (id int, val float, crt_time timestamp default now())
{%- if storage_path %} tablespace loadstone_feed{% endif %};
comment on table loadstone.feed is 'made by Loadstone';
{% if index != "none" %}
create index idx_feed on loadstone.feed using {{ index }} (crt_time)
{%- if tablespace %} tablespace {{ tablespace | identifier }}
{%- elif storage_path %} tablespace loadstone_feed{% endif %};
{% endif %}
