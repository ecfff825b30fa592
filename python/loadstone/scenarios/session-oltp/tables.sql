create table loadstone.user_info (
  userid int, engname text, cnname text, occupation text, birthday date, signname text, email text, qq numeric,
  crt_time timestamp, mod_time timestamp
);
create table loadstone.user_session (
  userid int, logintime timestamp, logouttime timestamp, online_interval interval default interval '0'
);
create table loadstone.user_login_rec (userid int, login_time timestamp, ip inet);
create table loadstone.user_logout_rec (userid int, logout_time timestamp, ip inet);
CREATE TABLE loadstone.sbtest (id SERIAL primary key, k integer  DEFAULT '0' NOT NULL, c varchar(120) DEFAULT '' NOT NULL, pad varchar(60) DEFAULT '' NOT NULL );
CREATE TABLE loadstone.sbtest1 (id SERIAL primary key, k integer DEFAULT '0' NOT NULL, c char(120) DEFAULT '' NOT NULL, pad char(60) DEFAULT '' NOT NULL );
{% for table in ["user_info", "user_session", "user_login_rec", "user_logout_rec", "sbtest", "sbtest1"] %}
comment on table loadstone.{{ table }} is 'made by Loadstone';
{% endfor %}
