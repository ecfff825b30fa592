drop table if exists loadstone.user_info, loadstone.user_session, loadstone.user_login_rec, loadstone.user_logout_rec, loadstone.sbtest, loadstone.sbtest1;
drop procedure if exists loadstone.f_user_logout;
drop procedure if exists loadstone.oltp_test;
