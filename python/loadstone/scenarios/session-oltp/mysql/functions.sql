-- Procedures, as functions cannot end a transaction: each is one, as a function of PostgreSQL is.
create procedure loadstone.f_user_logout(in i_userid int, out o_result int)
modifies sql data
begin
  declare exit handler for sqlexception begin
    rollback;
    set o_result = 1;
  end;
  start transaction;
  insert into loadstone.user_logout_rec (userid, logout_time, ip) values (i_userid, now(6), substring_index(user(), '@', -1));
  update loadstone.user_session set logouttime = now(6), online_interval = online_interval + timestampdiff(microsecond, logintime, now(6)) where userid = i_userid;
  commit;
  set o_result = 0;
end;
-- Selects without a variable would send their rows to the client; of ranges, the rows are made and counted.
create procedure loadstone.oltp_test(in i_id int, in i_id2 int)
modifies sql data
begin
  declare found int;
  declare text_found varchar(120);
  declare exit handler for sqlexception rollback;
  start transaction;
  insert into loadstone.sbtest (id, k, c, pad) values (i_id, 1, 'test', 'testpad');
  select c into text_found from loadstone.sbtest where id = i_id;
  update loadstone.sbtest set k = k + 1 where id = i_id;
  select count(*) into found from (select c from loadstone.sbtest where id between i_id and i_id2 group by c) as r;
  select count(*) into found from (select c from loadstone.sbtest where id between i_id and i_id2 order by c limit 18446744073709551615) as r;
  select sum(k) into found from loadstone.sbtest where id between i_id and i_id + 10;
  select count(c) into found from loadstone.sbtest where id between i_id and i_id2;
  update loadstone.sbtest set c = 'new' where id = i_id;
  delete from loadstone.sbtest where id = i_id;
  commit;
end;
