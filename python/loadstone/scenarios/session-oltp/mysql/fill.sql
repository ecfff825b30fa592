-- 100,000 rows a statement: a stop need not wait for all of them.
{% set digits = "(select 0 as d union all select 1 union all select 2 union all select 3 union all select 4 union all select 5 union all select 6 union all select 7 union all select 8 union all select 9)" %}
{% set numbers = "(select a.d * 10000 + b.d * 1000 + c.d * 100 + e.d * 10 + f.d as n from " ~ digits ~ " as a cross join " ~ digits ~ " as b cross join " ~ digits ~ " as c cross join " ~ digits ~ " as e cross join " ~ digits ~ " as f) as numbers" %}
{% for block in range((users + 99999) // 100000) %}
insert into loadstone.user_info (userid,engname,cnname,occupation,birthday,signname,email,qq,crt_time,mod_time)
select {{ block * 100000 + 1 }} + n, 'digoal.zhou', '德哥', 'DBA', '1970-01-01', '公益是一辈子的事, I''m Digoal.Zhou, Just do it!', 'digoal@126.com', 276732431, now(6), NULL
from {{ numbers }} where n < {{ users - block * 100000 }} order by 1;
insert into loadstone.user_session (userid) select {{ block * 100000 + 1 }} + n from {{ numbers }} where n < {{ users - block * 100000 }} order by 1;
{% endfor %}
{% for block in range((mix_rows + 99999) // 100000) %}
insert into loadstone.sbtest1 (id, k, c, pad)
select id, 1 + floor(rand() * {{ mix_rows }}), concat(md5(concat(id, '')), md5(concat(id + 1, '')), md5(concat(id + 2, '')), left(md5(concat(id + 3, '')), 24)), concat(md5(concat(id + 4, '')), left(md5(concat(id + 5, '')), 28))
from (select {{ block * 100000 + 1 }} + n as id from {{ numbers }} where n < {{ mix_rows - block * 100000 }}) as ids order by id;
{% endfor %}
analyze table loadstone.user_info, loadstone.user_session, loadstone.sbtest1;
