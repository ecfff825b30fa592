//! Hosts as TSBS draws them: tags, constants and first states.

use std::fmt::Write as _;

use super::UseCase;
use super::config::Settled;
use super::go_rand::GoRand;
use super::influx::labels;
use super::lifetime::metric_counts;
use super::strings::Strings;
use super::tables::Tables;

const REGIONS: [(&str, &str); 9] = [
    ("us-east-1", "abce"),
    ("us-west-1", "ab"),
    ("us-west-2", "abc"),
    ("eu-west-1", "abc"),
    ("eu-central-1", "ab"),
    ("ap-southeast-1", "ab"),
    ("ap-southeast-2", "ab"),
    ("ap-northeast-1", "ac"),
    ("sa-east-1", "abc"),
];
const ARCHITECTURES: [&str; 2] = ["x64", "x86"];
const SYSTEMS: [&str; 3] = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", "test"];
const TEAMS: [&str; 4] = ["SF", "NYC", "LON", "CHI"];
const FILE_SYSTEMS: [&str; 3] = ["ext3", "ext4", "btrfs"];
const MEMORY_BYTES: [u64; 3] = [8 << 30, 12 << 30, 16 << 30];

/// All hosts of one simulation: what never changes.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    pub(super) schema: Tables,
    /// The tags of each host as text, up to those that only some tables have.
    pub(super) tags: Strings,
    /// For each table: more tags, the end of the line and the table's name. One for all
    /// hosts where the table has no tags of its own.
    pub(super) leads: Vec<Strings>,
    /// For each table: the names of its fields, as line protocol shows them.
    pub(super) labels: Vec<Strings>,
    pub(super) boot_times: Vec<i64>,
    pub(super) memory_bytes: Vec<i64>,
    /// Where each host's states begin, and the last end.
    pub(super) bounds: Vec<usize>,
}

impl Hosts {
    /// Draws all hosts; their first states come second.
    pub(super) fn draw(
        use_case: UseCase,
        settled: &Settled,
        metrics: usize,
        rng: &mut GoRand,
    ) -> (Self, Vec<f64>) {
        let schema = Tables::of(use_case, metrics);
        let mut hosts = Self {
            leads: vec![Strings::new(); schema.tables.len()],
            labels: schema
                .tables
                .iter()
                .map(|table| labels(table.fields.iter().map(String::as_str)))
                .collect(),
            schema,
            tags: Strings::new(),
            boot_times: Vec::new(),
            memory_bytes: Vec::new(),
            bounds: vec![0],
        };
        let mut states = Vec::new();
        let counts = match use_case {
            UseCase::DevopsGeneric => metric_counts(settled.devices, metrics),
            _ => Vec::new(),
        };
        for id in 0..settled.devices {
            match use_case {
                UseCase::Devops | UseCase::Iot => hosts.draw_devops(&mut states, rng),
                UseCase::CpuOnly | UseCase::CpuSingle => {
                    let width = hosts.schema.walks.len();
                    states.extend((0..width).map(|_| rng.float64() * 100.0));
                }
                UseCase::DevopsGeneric => {
                    let width = counts[id as usize];
                    states.extend((0..width).map(|_| rng.float64() * 1000.0));
                }
            }
            hosts.bounds.push(states.len());
            hosts.tags.push(&common_tags(id, rng));
        }
        hosts.add_plain_leads();
        (hosts, states)
    }

    /// Gives the tables without tags of their own their one lead.
    fn add_plain_leads(&mut self) {
        for (table, leads) in self.schema.tables.iter().zip(&mut self.leads) {
            if leads.longest() == 0 {
                leads.push(&format!("\n{}", table.name));
            }
        }
    }

    /// A devops host without its tags: the draws of its nine tables in their order.
    fn draw_devops(&mut self, states: &mut Vec<f64>, rng: &mut GoRand) {
        let first = states.len();
        states.extend_from_slice(self.schema.walks.start());
        let states = &mut states[first..];
        states[..10].fill_with(|| rng.float64() * 100.0);
        let serial: [u64; 3] = std::array::from_fn(|_| rng.intn(1000));
        let [a, b, c] = serial;
        self.lead("diskio", &format!(",serial={a:03}-{b:03}-{c:03}"));
        let path = rng.intn(10);
        self.lead(
            "disk",
            &format!(",path=/dev/sda{path},fstype={}", choose(rng, &FILE_SYSTEMS)),
        );
        self.boot_times.push(rng.int63n(240).cast_signed());
        self.draw_memory(states, rng);
        let interface = rng.intn(4);
        self.lead("net", &format!(",interface=eth{interface}"));
        for name in ["nginx", "redis"] {
            let server = rng.intn(100_000);
            let port = rng.int63n(20_000) + 1024;
            self.lead(name, &format!(",port={port},server={name}_{server}"));
        }
    }

    fn draw_memory(&mut self, states: &mut [f64], rng: &mut GoRand) {
        let total = choose(rng, &MEMORY_BYTES);
        self.memory_bytes.push(total.cast_signed());
        let first = self
            .schema
            .index("mem")
            .map_or(0, |table| self.schema.tables[table].first);
        states[first..first + 3].fill_with(|| rng.float64() * as_double(total));
    }

    fn lead(&mut self, table: &str, tags: &str) {
        if let Some(index) = self.schema.index(table) {
            self.leads[index].push(&format!("{tags}\n{table}"));
        }
    }
}

/// A size in bytes, below 2^53.
#[expect(clippy::cast_precision_loss, reason = "sizes here are exact")]
pub(super) fn as_double(bytes: u64) -> f64 {
    bytes as f64
}

fn choose<T: Copy>(rng: &mut GoRand, choices: &[T]) -> T {
    let index = rng.intn(choices.len() as u64);
    choices[usize::try_from(index).unwrap_or(0)]
}

/// The ten tags of every host. TSBS draws them in another order than it writes them.
fn common_tags(id: u32, rng: &mut GoRand) -> String {
    let (region, letters) = choose(rng, &REGIONS);
    let letter = char::from(choose(rng, letters.as_bytes()));
    let rack = rng.int63n(100);
    let arch = choose(rng, &ARCHITECTURES);
    let os = choose(rng, &SYSTEMS);
    let service = rng.int63n(20);
    let version = rng.int63n(2);
    let environment = choose(rng, &ENVIRONMENTS);
    let team = choose(rng, &TEAMS);
    let mut text = format!("tags,hostname=host_{id},region={region},datacenter={region}{letter}");
    let _infallible = write!(
        text,
        ",rack={rack},os={os},arch={arch},team={team},service={service},service_version={version},\
         service_environment={environment}"
    );
    text
}
