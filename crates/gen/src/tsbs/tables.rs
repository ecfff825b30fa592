//! The tables of the host use cases: names, fields, how the fields move and how they are shown.

use super::UseCase;
use super::walk::Walks;

/// How a table's states become its fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// Each state, truncated to an integer.
    States,
    /// The time since boot, which never changes, then the states.
    Kernel,
    /// The seconds that the host has run, then the states.
    Redis,
    /// Space and inodes, from the free space.
    Disk,
    /// Bytes and per cents, from used, cached and buffered bytes.
    Memory,
    /// Each state, truncated; the number of fields is the host's own.
    Ragged,
}

/// One table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) fields: Vec<String>,
    pub(super) shape: Shape,
    /// States of one host that belong to this table, and where they begin.
    pub(super) first: usize,
    pub(super) width: usize,
}

/// Space of every disk.
pub(super) const DISK_BYTES: i64 = 1 << 40;

const CPU: &str = "usage_user usage_system usage_idle usage_nice usage_iowait usage_irq \
    usage_softirq usage_steal usage_guest usage_guest_nice";
const DISKIO: &str = "reads writes read_bytes write_bytes read_time write_time io_time";
const DISK: &str = "total free used used_percent inodes_total inodes_free inodes_used";
const KERNEL: &str =
    "boot_time interrupts context_switches processes_forked disk_pages_in disk_pages_out";
const MEMORY: &str = "total available used free cached buffered used_percent available_percent \
    buffered_percent";
const NET: &str = "bytes_sent bytes_recv packets_sent packets_recv err_in err_out drop_in drop_out";
const NGINX: &str = "accepts active handled reading requests waiting writing";
const POSTGRES: &str = "numbackends xact_commit xact_rollback blks_read blks_hit tup_returned \
    tup_fetched tup_inserted tup_updated tup_deleted conflicts temp_files temp_bytes deadlocks \
    blk_read_time blk_write_time";
const REDIS: &str = "uptime_in_seconds total_connections_received expired_keys evicted_keys \
    keyspace_hits keyspace_misses instantaneous_ops_per_sec instantaneous_input_kbps \
    instantaneous_output_kbps connected_clients used_memory used_memory_rss used_memory_peak \
    used_memory_lua rdb_changes_since_last_save sync_full sync_partial_ok sync_partial_err \
    pubsub_channels pubsub_patterns latest_fork_usec connected_slaves master_repl_offset \
    repl_backlog_active repl_backlog_size repl_backlog_histlen mem_fragmentation_ratio \
    used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children";

/// The tables of one use case, in order of simulation, with the walks of one host.
#[derive(Clone, Debug, Default)]
pub(super) struct Tables {
    pub(super) tables: Vec<Table>,
    pub(super) walks: Walks,
}

impl Tables {
    /// The tables of a host use case; `metrics` is the number of fields of `devops-generic`.
    pub(super) fn of(use_case: UseCase, metrics: usize) -> Self {
        let new = Self::default();
        match use_case {
            UseCase::CpuOnly => new.cpu(CPU),
            UseCase::CpuSingle => new.cpu("usage_user"),
            UseCase::DevopsGeneric => new.generic(metrics),
            UseCase::Devops | UseCase::Iot => new.devops(),
        }
    }

    /// Adds a table whose walks `extend` appends.
    fn table(
        mut self,
        name: &'static str,
        fields: &str,
        shape: Shape,
        extend: impl FnOnce(Walks) -> Walks,
    ) -> Self {
        let first = self.walks.len();
        self.walks = extend(self.walks);
        let fields = fields.split_whitespace().map(str::to_owned).collect();
        let width = self.walks.len() - first;
        self.tables.push(Table {
            name,
            fields,
            shape,
            first,
            width,
        });
        self
    }

    fn cpu(self, fields: &str) -> Self {
        let count = fields.split_whitespace().count();
        self.table("cpu", fields, Shape::States, |w| {
            w.bounded(count, 0.0, 100.0, 0.0)
        })
    }

    fn generic(self, metrics: usize) -> Self {
        let fields: Vec<String> = (0..metrics).map(|i| format!("metric_{i}")).collect();
        let walks = |w: Walks| w.bounded(metrics, 0.0, 1000.0, 0.0);
        self.table("generic_metrics", &fields.join(" "), Shape::Ragged, walks)
    }

    fn devops(self) -> Self {
        let free = 0.5 * GIB * 1024.0;
        self.cpu(CPU)
            .table("diskio", DISKIO, Shape::States, |w| {
                w.rising(2, 50.0).rising(2, 100.0).rising(3, 5.0)
            })
            .table("disk", DISK, Shape::Disk, |w| {
                w.bounded(1, 50.0, 1024.0 * GIB, free)
            })
            .table("kernel", KERNEL, Shape::Kernel, |w| w.rising(5, 5.0))
            .table("mem", MEMORY, Shape::Memory, |w| {
                w.bounded(3, 0.0, 0.0, 0.0)
            })
            .table("net", NET, Shape::States, |w| {
                w.rising(4, 50.0).rising(4, 5.0)
            })
            .table("nginx", NGINX, Shape::States, nginx)
            .table("postgresl", POSTGRES, Shape::States, |w| {
                w.bounded(12, 5.0, 1000.0, 0.0)
                    .bounded(1, 1024.0, GIB, 0.0)
                    .bounded(3, 5.0, 1000.0, 0.0)
            })
            .table("redis", REDIS, Shape::Redis, redis)
    }

    /// Index of the table of this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }
}

const GIB: f64 = 1_073_741_824.0;

fn nginx(walks: Walks) -> Walks {
    let pair = |w: Walks| w.rising(1, 5.0).bounded(1, 5.0, 100.0, 0.0);
    pair(pair(pair(walks))).bounded(1, 5.0, 100.0, 0.0)
}

fn redis(walks: Walks) -> Walks {
    walks
        .rising(1, 5.0)
        .rising(4, 50.0)
        .free(3, 1.0)
        .bounded(1, 50.0, 10_000.0, 0.0)
        .bounded(4, 50.0, 16.0 * GIB, 8.0 * GIB)
        .bounded(1, 50.0, 10_000.0, 0.0)
        .bounded(11, 5.0, 1000.0, 0.0)
        .bounded(1, 5.0, 100.0, 0.0)
        .bounded(4, 5.0, 1000.0, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devops_host_has_nine_tables_of_101_fields_from_87_walks() {
        let devops = Tables::of(UseCase::Devops, 0);
        let fields: usize = devops.tables.iter().map(|table| table.fields.len()).sum();
        assert_eq!(
            (devops.tables.len(), fields, devops.walks.len()),
            (9, 101, 87)
        );
    }
}
