drop function f_user_logout(integer);
drop function oltp_test(int, int);
