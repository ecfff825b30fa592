"""What PostgreSQL is asked: one whole statement per query and range of versions.

Version numbers are `server_version_num` (170000 is 17.0); a statement serves from its number up to the next.
"""

from __future__ import annotations

IDENTITY = """
select version() as version_text, current_setting('server_version') as version,
       current_setting('server_version_num')::int as number, pg_is_in_recovery() as standby
"""

# Of whatever kind an object is, a collation or an extension: what is in a schema depends on it.
WORKSPACE = """
select obj_description(n.oid, 'pg_namespace') as comment,
       (select count(*) from pg_depend d
        where d.refclassid = 'pg_namespace'::regclass and d.refobjid = n.oid
        and d.classid <> 'pg_default_acl'::regclass) as objects
from pg_namespace n where n.nspname = %(schema)s
"""

DATABASE = "select 1 as one from pg_database where datname = %(name)s"
"""Whether there is a database of this name."""
PID = "select pg_backend_pid() as pid"

# Where start-up options are taken, their source is the client. Spaces and quotes in lists mean nothing here.
SETTINGS_LOST = """
select w.name || ' is ' || current_setting(w.name) || ', and ' || w.value || ' was asked for' as what,
       {hint} as hint
from (values {rows}) as w(name, value)
where lower(translate(current_setting(w.name), ' "', '')) <> lower(translate(w.value, ' "', ''))
and (w.name = 'search_path' or not exists
     (select 1 from pg_settings s where lower(s.name) = lower(w.name) and s.source = 'client'))
"""

CLAIM_LOST = """
select {words} as what, 'Let one run at a time have a database.' as hint
where not exists (select 1 from pg_namespace n
                  where n.nspname = {schema} and obj_description(n.oid, 'pg_namespace') = {mark})
"""

# One row for each session that holds what the session waits for; one with nulls where nobody does.
WAITING = """
select a.state, h.pid as holder, b.application_name as application, b.usename as holder_user,
       to_char(b.query_start, 'HH24:MI:SS') as since,
       (select l.relation::regclass::text from pg_locks l where l.pid = a.pid and not l.granted limit 1)
       as locked
from pg_stat_activity a left join lateral unnest(pg_blocking_pids(a.pid)) as h(pid) on true
     left join pg_stat_activity b on b.pid = h.pid
where a.pid = %(pid)s
order by b.query_start nulls last
"""

CLAIM = "select pg_try_advisory_lock(hashtext(%(name)s)) as ours"
RELEASE = "select pg_advisory_unlock_all()"
HOLDER = """
select a.pid, a.application_name as application, a.usename as holder,
       to_char(a.backend_start, 'HH24:MI:SS') as since
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objid = (hashtext(%(name)s)::bigint & 4294967295)::oid
and l.database = (select oid from pg_database where datname = current_database())
"""
SESSIONS_OF = """
select pid from pg_stat_activity where application_name = %(name)s and datname = current_database()
and pid <> pg_backend_pid() order by pid
"""

LOST_SESSIONS = """
select pid, backend_start, state_change from pg_stat_activity
where (application_name = %(name)s or pid = %(pid)s) and pid <> pg_backend_pid() and usename = current_user
"""

SETTINGS = """
select name, current_setting(name) as value, source
from pg_settings
where source not in ('default', 'session', 'client') or name = any(%(always)s)
order by name
"""

UNLOGGED = """
select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relkind in ('r', 'm') and c.relpersistence = 'u'
"""

CANCEL = """
select count(pg_terminate_backend(pid)) as ended from pg_stat_activity
where application_name = %(name)s and pid <> pg_backend_pid() and usename = current_user
"""

EXTENSIONS = "select name from pg_available_extensions order by name"
LANGUAGES = "select lanname from pg_language where lanpltrusted order by lanname"
ACCESS_METHODS = "select amname from pg_am where amtype = 'i' order by amname"

DATABASE_SIZE = """
select pg_database_size(current_database())::bigint as database_bytes,
       case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')
            else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') end::bigint as wal_lsn_bytes
"""

# A relation may be dropped while we look: its size is then null, and counts as nothing.
RELATION_SIZES = """
select c.relname as name,
       case when c.relkind in ('r', 'p', 'm') then 'table' when c.relkind in ('i', 'I') then 'index'
            else 'other' end as kind,
       coalesce(i.indrelid::regclass::oid, c.oid) as table_oid, c.oid as oid,
       greatest(coalesce(pg_table_size(c.oid), 0)
                - case when c.reltoastrelid = 0 then 0
                       else coalesce(pg_total_relation_size(c.reltoastrelid), 0) end, 0)::bigint as bytes,
       case when c.relkind in ('r', 'm', 'i') and c.reltuples >= 0 then c.reltuples::bigint end
       as rows_estimate
from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_index i on i.indexrelid = c.oid
where n.nspname = %(schema)s and c.relkind in ('r', 'p', 'm', 'i', 'I', 'S')
union all
select t.relname, 'toast', c.oid, t.oid, coalesce(pg_total_relation_size(t.oid), 0)::bigint, null
from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_class t on t.oid = c.reltoastrelid
where n.nspname = %(schema)s
order by bytes desc, name
"""

# A table with its partitions, their TOAST tables and indexes. {members} adds relations of another kind.
STORAGE = """
with recursive tree(oid) as (
    select %(table)s::regclass::oid
    union select i.inhrelid from tree t join pg_inherits i on i.inhparent = t.oid
), members(oid) as (
    select t.oid from tree t {members}
), parts(oid, part, chunk) as (
    select c.oid, 'heap', null from members m join pg_class c on c.oid = m.oid
    union all
    select c.reltoastrelid, 'toast', null from members m join pg_class c on c.oid = m.oid
    where c.reltoastrelid <> 0
    union all
    select i.indexrelid, 'toast', null from members m join pg_class c on c.oid = m.oid
    join pg_index i on i.indrelid = c.reltoastrelid
    union all
    select i.indexrelid, 'index',
           case when c.oid <> %(table)s::regclass and not c.relispartition then c.relname end
    from members m join pg_class c on c.oid = m.oid
    join pg_index i on i.indrelid = c.oid
)
select p.oid, p.part, p.chunk, c.relname as name, c.relkind as kind, h.inhparent as parent,
       coalesce(pg_relation_size(c.oid, 'main'), 0) as main,
       coalesce(pg_relation_size(c.oid, 'fsm'), 0) + coalesce(pg_relation_size(c.oid, 'vm'), 0) as maps,
       coalesce(pg_relation_size(c.oid, 'init'), 0) as init,
       pg_relation_filepath(c.oid) as file
from parts p join pg_class c on c.oid = p.oid
left join pg_inherits h on h.inhrelid = p.oid and p.part = 'index'
"""

EXTENSION_SCHEMA = """
select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = %(name)s
"""
FREE_SPACE_MAP = """
select exists (select from pg_available_extensions where name = 'pg_freespacemap') as available,
       (select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
        where e.extname = 'pg_freespacemap') as schema
"""

_COUNTERS_10 = """
select case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')
            else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') end::bigint as wal_bytes,
       null::bigint as wal_records, null::bigint as wal_fpi,
       d.xact_commit, d.xact_rollback, d.tup_inserted, d.tup_updated, d.tup_deleted, d.tup_returned,
       d.tup_fetched, d.blks_read, d.blks_hit, d.temp_bytes, d.deadlocks,
       b.checkpoints_timed, b.checkpoints_req as checkpoints_requested, b.buffers_checkpoint, b.buffers_clean,
       b.buffers_backend, b.checkpoint_write_time as checkpoint_write_ms,
       b.checkpoint_sync_time as checkpoint_sync_ms
from pg_stat_database d, pg_stat_bgwriter b where d.datname = current_database()
"""

_COUNTERS_14 = """
select w.wal_bytes::bigint as wal_bytes, w.wal_records, w.wal_fpi,
       d.xact_commit, d.xact_rollback, d.tup_inserted, d.tup_updated, d.tup_deleted, d.tup_returned,
       d.tup_fetched, d.blks_read, d.blks_hit, d.temp_bytes, d.deadlocks,
       b.checkpoints_timed, b.checkpoints_req as checkpoints_requested, b.buffers_checkpoint, b.buffers_clean,
       b.buffers_backend, b.checkpoint_write_time as checkpoint_write_ms,
       b.checkpoint_sync_time as checkpoint_sync_ms
from pg_stat_database d, pg_stat_bgwriter b, pg_stat_wal w where d.datname = current_database()
"""

# 17 moved the checkpointer's columns to a view of their own, and what backends write to pg_stat_io.
_COUNTERS_17 = """
select w.wal_bytes::bigint as wal_bytes, w.wal_records, w.wal_fpi,
       d.xact_commit, d.xact_rollback, d.tup_inserted, d.tup_updated, d.tup_deleted, d.tup_returned,
       d.tup_fetched, d.blks_read, d.blks_hit, d.temp_bytes, d.deadlocks,
       c.num_timed as checkpoints_timed, c.num_requested as checkpoints_requested,
       c.buffers_written as buffers_checkpoint, b.buffers_clean,
       (select sum(io.writes)::bigint from pg_stat_io io
        where io.object = 'relation' and io.backend_type not in ('checkpointer', 'background writer'))
       as buffers_backend,
       c.write_time as checkpoint_write_ms, c.sync_time as checkpoint_sync_ms
from pg_stat_database d, pg_stat_bgwriter b, pg_stat_checkpointer c, pg_stat_wal w
where d.datname = current_database()
"""

_COUNTERS = ((170000, _COUNTERS_17), (140000, _COUNTERS_14), (100000, _COUNTERS_10))

GAUGES = """
select (select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables where schemaname = %(schema)s)
       as dead_tuples,
       (select coalesce(sum(n_live_tup), 0)::bigint from pg_stat_user_tables where schemaname = %(schema)s)
       as live_tuples,
       count(*) as connections, count(*) filter (where state = 'active') as active
from pg_stat_activity where backend_type = 'client backend' and datname = current_database()
"""

WAITS = """
select wait_event_type || ':' || wait_event as wait, count(*) as sessions
from pg_stat_activity
where state = 'active' and wait_event is not null and pid <> pg_backend_pid()
group by 1 order by 1
"""

# What extensions show of the server's machine. Their schema is where they were made.
OF_THE_MACHINE = """
select a.name, n.nspname as schema
from pg_available_extensions a left join pg_extension e on e.extname = a.name
left join pg_namespace n on n.oid = e.extnamespace
where a.name = any(%(names)s) order by a.name
"""

SYSTEM_STATS_MEMORY = """
select total_memory as total, total_memory - free_memory - coalesce(cache_total, 0) as used
from {schema}.pg_sys_memory_info()
"""
SYSTEM_STATS_CPU = """
select coalesce(idle_mode_percent, 0)::float8 as idle, coalesce(io_completion_percent, 0)::float8 as iowait
from {schema}.pg_sys_cpu_usage_info()
"""
SYSTEM_STATS_DISKS = """
select device_name as device, total_reads as reads, total_writes as writes, read_bytes as read,
       write_bytes as written
from {schema}.pg_sys_io_analysis_info()
"""

PROCTAB_CPU = """
select "user", nice, system, idle, iowait from {schema}.pg_cputime()
"""
PROCTAB_MEMORY = """
select memused + memfree as total, memused - membuffers - memcached as used from {schema}.pg_memusage()
"""
PROCTAB_DISKS = """
select devname as device, reads_completed as reads, writes_completed as writes, sectors_read as read,
       sectors_written as written
from {schema}.pg_diskusage()
"""

# Of statements that have ended; what they read and write is counted past the system's cache.
KCACHE = """
select sum(plan_user_time + exec_user_time) as cpu_user_s, sum(plan_system_time + exec_system_time)
       as cpu_system_s, sum(plan_reads + exec_reads)::bigint as read_bytes,
       sum(plan_writes + exec_writes)::bigint as write_bytes
from {schema}.pg_stat_kcache() where top
"""

SEES_ALL_SESSIONS = """
select pg_has_role(current_user, 'pg_read_all_stats', 'member')
       or (select rolsuper from pg_roles where rolname = current_user)
"""

BACKEND = """
select pg_backend_pid() as pid, inet_server_addr() is null as by_socket,
       (select setting from pg_settings where name = 'data_directory') as data_directory
"""

ROOM = """
select current_setting('max_connections')::int as allowed,
       current_setting('superuser_reserved_connections')::int
       + coalesce(current_setting('reserved_connections', true), '0')::int as reserved,
       (select rolsuper from pg_roles where rolname = current_user) as superuser,
       (select case when rolconnlimit < 0 then null else rolconnlimit end from pg_roles
        where rolname = current_user) as role_limit,
       (select case when datconnlimit < 0 then null else datconnlimit end from pg_database
        where datname = current_database()) as database_limit,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as used
"""


def counters(number: int) -> str:
    """Return the statement that reads all cumulative counters of a server of this version number."""
    return next(text for since, text in _COUNTERS if number >= since)
