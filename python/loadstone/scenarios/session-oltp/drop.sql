drop table if exists user_info, user_session, user_login_rec, user_logout_rec, sbtest;
