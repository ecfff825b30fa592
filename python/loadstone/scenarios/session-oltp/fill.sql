insert into loadstone.user_info (userid,engname,cnname,occupation,birthday,signname,email,qq,crt_time,mod_time)
select generate_series(1,{{ users }}),
'digoal.zhou',
'德哥',
'DBA',
'1970-01-01'
,E'公益是一辈子的事, I\'m Digoal.Zhou, Just do it!',
'digoal@126.com',
276732431,
clock_timestamp(),
NULL;
insert into loadstone.user_session (userid) select generate_series(1,{{ users }});
-- Keys after the rows: one sort instead of a descent for each row.
alter table loadstone.user_info add constraint pk_user_info primary key (userid);
alter table loadstone.user_session add constraint pk_user_session primary key (userid);
insert into loadstone.sbtest1 (id, k, c, pad)
select i, 1 + floor(random() * {{ mix_rows }}), md5(i::text) || md5((i + 1)::text) || md5((i + 2)::text) || substr(md5((i + 3)::text), 1, 24), md5((i + 4)::text) || substr(md5((i + 5)::text), 1, 28)
from generate_series(1, {{ mix_rows }}) as i;
create index k_1 on loadstone.sbtest1 (k);
analyze loadstone.sbtest1;
analyze loadstone.user_info;
analyze loadstone.user_session;
