create table loadstone.user_info (
  userid int not null primary key, engname text, cnname text, occupation text, birthday date, signname text, email text, qq numeric,
  crt_time datetime(6), mod_time datetime(6)
) engine=InnoDB default charset=utf8mb4;
-- There is no type for intervals: microseconds.
create table loadstone.user_session (
  userid int not null primary key, logintime datetime(6), logouttime datetime(6), online_interval bigint default 0
) engine=InnoDB;
create table loadstone.user_login_rec (userid int, login_time datetime(6), ip varchar(45)) engine=InnoDB;
create table loadstone.user_logout_rec (userid int, logout_time datetime(6), ip varchar(45)) engine=InnoDB;
create table loadstone.sbtest (id int auto_increment primary key, k int default 0 not null, c varchar(120) default '' not null, pad varchar(60) default '' not null) engine=InnoDB;
create table loadstone.sbtest1 (id int auto_increment primary key, k int default 0 not null, c char(120) default '' not null, pad char(60) default '' not null, key k_1 (k)) engine=InnoDB;
