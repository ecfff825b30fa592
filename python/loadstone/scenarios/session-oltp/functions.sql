CREATE OR REPLACE FUNCTION loadstone.f_user_logout(i_userid integer, OUT o_result integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
begin
insert into loadstone.user_logout_rec (userid,logout_time,ip) values (i_userid,now(),inet_client_addr());
update loadstone.user_session set logouttime=now(),online_interval=online_interval+(now()-logintime) where userid=i_userid;
o_result := 0;
return;
exception
when others then
o_result := 1;
return;
end;
$function$;

create or replace function loadstone.oltp_test(i_id int, i_id2 int) returns void as $$
declare
begin
 INSERT INTO loadstone.sbtest(id, k, c, pad) values(i_id, 1, 'test', 'testpad');
 perform c from loadstone.sbtest where id=i_id;
 UPDATE loadstone.sbtest set k=k+1 where id=i_id;
 perform c from loadstone.sbtest where id between i_id and i_id2 group by c;
 perform c from loadstone.sbtest where id between i_id and i_id2 order by c;
 perform SUM(K) from loadstone.sbtest where id between i_id and i_id+10;
 perform c from loadstone.sbtest where id between i_id and i_id2;
 UPDATE loadstone.sbtest set c='new' where id=i_id;
 DELETE from loadstone.sbtest where id=i_id;
exception when others then
return;
end;
$$ language plpgsql strict;
