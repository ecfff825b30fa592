-- Half of each page stays free, so that a row's next version has room beside it.
create table loadstone.recovery_rows (id int not null, n bigint not null, filler text not null) with (fillfactor = 50);
-- Neither compressed nor moved away: the WAL has all of it.
alter table loadstone.recovery_rows alter column filler set storage plain;
insert into loadstone.recovery_rows select id, 0, repeat('-', {{ row_bytes }}) from generate_series(1, {{ rows }}) as id;
alter table loadstone.recovery_rows add primary key (id);
vacuum analyze loadstone.recovery_rows;
