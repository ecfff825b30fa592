create extension if not exists pg_prewarm;
select pg_prewarm('pk_user_session');
select pg_prewarm('user_session');
