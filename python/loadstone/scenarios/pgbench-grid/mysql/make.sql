-- Cells of one scale share its tables: they are filled once, and a fill that did not come to its end counts for none.
set @filled = (
    select count(*) from information_schema.tables
    where table_schema = 'loadstone' and table_name = 'pgbench_accounts' and table_comment = 'made by Loadstone: scale {{ scale }}'
);
set @text = if(@filled, 'do 0', 'drop table if exists loadstone.pgbench_accounts, loadstone.pgbench_branches, loadstone.pgbench_tellers, loadstone.pgbench_history');
prepare loadstone_make from @text;
execute loadstone_make;
deallocate prepare loadstone_make;
create table if not exists loadstone.pgbench_branches (bid int not null primary key, bbalance int, filler char(88)) engine=InnoDB;
create table if not exists loadstone.pgbench_tellers (tid int not null primary key, bid int, tbalance int, filler char(84)) engine=InnoDB;
create table if not exists loadstone.pgbench_accounts (aid int not null primary key, bid int, abalance int, filler char(84)) engine=InnoDB;
create table if not exists loadstone.pgbench_history (tid int, bid int, aid int, delta int, mtime datetime, filler char(22)) engine=InnoDB;
