//! Generated data against `tsbs_generate_data --format=timescaledb` and `--format=influx`, built from timescale/tsbs at
//! commit 37fced7 with Go 1.26.8 for amd64.

use loadstone_gen::tsbs::{
    Block, Config, ConfigError, Simulation, Text, UseCase, WriteError, WriteTotals, write,
};
use md5::{Digest, Md5};
use proptest::prelude::*;

/// MD5 of the output; use case; seed; scale, initial scale, most points, most metrics; start, end and
/// interval in seconds; group and groups.
type Case = (&'static str, UseCase, i64, [u64; 4], [i64; 3], [u32; 2]);

#[rustfmt::skip]
const CASES: [Case; 19] = [
    ("947d9a8302e03fc840175a149618d708", UseCase::Iot, 5, [50, 10, 0, 100], [1_451_606_400, 1_451_613_600, 10], [0, 1]),
    ("0f0b29be116da6cce289c8319fa69c7f", UseCase::Iot, 7, [20, 0, 0, 100], [1_451_606_400, 1_451_610_000, 10], [1, 3]),
    ("3073054474ebdceb994e92ea2f7587e5", UseCase::Iot, 23, [3, 0, 0, 100], [1_451_606_400, 1_451_607_000, 10], [0, 1]),
    ("16049b4fa8be83e9b86cd6c2d54a7f7e", UseCase::Iot, 12, [20, 0, 77, 100], [1_451_606_400, 1_451_607_010, 10], [0, 1]),
    ("255e9112ec2035ef330b3410732dface", UseCase::Iot, 8, [5, 9, 0, 100], [1_451_606_400, 1_451_606_700, 10], [0, 1]),
    ("47d0a6f759f669924cd0301a85467840", UseCase::Iot, 13, [20, 0, 0, 100], [1_451_606_400, 1_451_606_400, 10], [0, 1]),
    ("926c6ef03466cff4a9124eee4d63dd76", UseCase::Devops, 2_147_483_770, [2, 0, 0, 100], [1_451_606_400, 1_451_606_460, 10], [0, 1]),
    ("18350e60bce8466b14599a3c094156ec", UseCase::Devops, 123, [10, 0, 0, 100], [1_451_606_400, 1_451_610_000, 10], [0, 1]),
    ("70be738c9ba1b417e9506482029fcc7c", UseCase::Devops, 8, [5, 9, 0, 100], [1_451_606_400, 1_451_606_700, 10], [0, 1]),
    ("dbf474049c1c0fc1b05a807d10c609e9", UseCase::Devops, 12, [20, 0, 777, 100], [1_451_606_400, 1_451_607_010, 10], [0, 1]),
    ("e8ab773689c66ceaf6e1e18a2ac14dba", UseCase::Devops, 12, [3, 0, 0, 100], [-599_619_600, 70, 31_536_000], [0, 1]),
    ("fe63db5ba84494e46b7f7382d043d82b", UseCase::Devops, -77, [40, 3, 0, 100], [1_451_606_400, 1_451_607_000, 15], [2, 5]),
    ("a45326e0f9623bc8d92ceeb35148170a", UseCase::CpuOnly, 9, [20, 1, 0, 100], [1_451_606_400, 1_451_610_000, 10], [0, 1]),
    ("7d546733f790c0b39e2d185e1d242b66", UseCase::CpuOnly, 12, [2000, 0, 0, 100], [-3600, 70, 600], [0, 1]),
    ("a50e1e60b0801ad8d38b90d59d9caf23", UseCase::CpuSingle, 123, [10, 0, 0, 100], [1_451_606_400, 1_451_610_000, 10], [0, 1]),
    ("a16962d254d76d9616851a4f19e7a842", UseCase::DevopsGeneric, 123, [10, 0, 0, 100], [1_451_606_400, 1_451_610_000, 10], [0, 1]),
    ("78d7ebaf03d817057e312327a34864e3", UseCase::DevopsGeneric, 6, [1, 0, 0, 500], [1_451_606_400, 1_451_607_000, 10], [0, 1]),
    ("ebc0ab1948d697df6279fa31031c831c", UseCase::DevopsGeneric, 6, [200, 20, 0, 1000], [1_451_606_400, 1_451_607_600, 60], [0, 1]),
    ("6f073e700f51ef8ccd616f3b13660696", UseCase::DevopsGeneric, 6, [20, 40, 0, 100], [1_451_606_400, 1_451_607_600, 60], [1, 3]),
];

/// MD5 of the output with `--format=influx`, case by case.
const INFLUX: [&str; 19] = [
    "1a2c4fbe9d1a6abd2e2b837b1d197da8",
    "257b46750985cbd8fe8e21cd2bffe7db",
    "361226334bdb7fb115dc356d6b2224fc",
    "6ab1aadfba88ead0b7d4cc6e717cde2a",
    "983297db890cf101c7dc5a47526660b6",
    "d41d8cd98f00b204e9800998ecf8427e",
    "4b98b90baff333e03433b19d6c76abf7",
    "bd5b5769fc147c732695af580952ce65",
    "63ab0fb96a51893d29c111d288e37990",
    "48d41fc1bd76e7a44da2a6827505df83",
    "c500bdf6bff24b31e01cff582ccb47a5",
    "6339688ea8a5824851c340b1f426387b",
    "a3964dc211e67a8d72085fbaebefc8fa",
    "29acd00b1c211eca9630f97cafd885ab",
    "7f048499345a79f53a67ed2e04d5726b",
    "aaccbe6e55d19bbbca259ddb8f8699dc",
    "bfc22ceaf7b32cae957c21722a161128",
    "ff06b228ede8efd8fbb884921fd1a0b8",
    "7b22c812ee047c60311aa4a04ec5c0db",
];

fn config(case: &Case) -> Config {
    let (_, use_case, seed, [scale, initial_scale, max_points, max_metrics], times, groups) = *case;
    let [start_ns, end_ns, interval_ns] = times.map(|seconds| seconds * 1_000_000_000);
    let [group, groups] = groups;
    Config {
        use_case,
        seed,
        scale,
        initial_scale,
        start_ns,
        end_ns,
        interval_ns,
        max_points,
        max_metrics,
        group,
        groups,
    }
}

#[expect(
    clippy::expect_used,
    reason = "a broken configuration must fail the test"
)]
fn text(config: &Config) -> (Vec<u8>, WriteTotals) {
    let mut text = Vec::new();
    let written = write(config, &mut text).expect("the configuration is good");
    (text, written)
}

#[test]
fn output_is_that_of_tsbs_byte_for_byte() {
    for case in &CASES {
        let (text, written) = text(&config(case));
        assert_eq!(format!("{:x}", Md5::digest(&text)), case.0, "{case:?}");
        assert_eq!(written.bytes, text.len() as u64);
    }
}

#[test]
fn line_protocol_is_that_of_tsbs_byte_for_byte() {
    for (case, digest) in CASES.iter().zip(INFLUX) {
        let mut simulation = Simulation::new(&config(case)).expect("the configuration is good");
        let catalog = simulation.catalog().clone();
        let (mut block, mut text) = (Block::default(), Text::default());
        let mut md5 = Md5::new();
        while simulation.fill(&mut block) {
            text.clear();
            catalog.format_influx(&block, &mut text);
            md5.update(text.as_bytes());
        }
        assert_eq!(format!("{:x}", md5.finalize()), digest, "{case:?}");
    }
}

/// The lines after the header, two to a row.
#[expect(
    clippy::expect_used,
    reason = "output without a header must fail the test"
)]
fn rows(text: &[u8]) -> Vec<Vec<u8>> {
    let header = text
        .windows(2)
        .position(|pair| pair == b"\n\n")
        .expect("a header ends")
        + 2;
    let lines: Vec<_> = text[header..]
        .split_inclusive(|&byte| byte == b'\n')
        .collect();
    lines.chunks(2).map(<[_]>::concat).collect()
}

fn short(use_case: UseCase, seed: i64, scale: u64, epochs: i64) -> Config {
    let start = Config::new(use_case, seed);
    let end_ns = start.start_ns + epochs * start.interval_ns;
    Config {
        scale,
        end_ns,
        ..start
    }
}

#[test]
fn rows_and_metrics_are_counted_as_written() {
    for (_, use_case) in UseCase::NAMES {
        let config = Config {
            max_metrics: 9,
            ..short(use_case, 5, 30, 20)
        };
        let (text, written) = text(&config);
        let rows = rows(&text);
        let commas = |row: &Vec<u8>| {
            let values = row
                .split(|&byte| byte == b'\n')
                .nth(1)
                .expect("a row has two lines");
            values.split(|&byte| byte == b',').count() as u64 - 2
        };
        let metrics: u64 = rows.iter().map(commas).sum();
        assert_eq!(
            (written.rows, written.metrics),
            (rows.len() as u64, metrics),
            "{use_case:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn interleaved_groups_together_are_the_whole(
        which in 0..UseCase::NAMES.len(),
        seed: i64,
        scale in 1..40_u64,
        initial_scale in 0..40_u64,
        epochs in 1..20_i64,
        max_points in 0..4000_u64,
        groups in 1..6_u32,
    ) {
        let (_, use_case) = UseCase::NAMES[which];
        let whole = Config { initial_scale, max_points, ..short(use_case, seed, scale, epochs) };
        let slice = |group| rows(&text(&Config { group, groups, ..whole.clone() }).0);
        let mut slices: Vec<_> = (0..groups).map(|group| slice(group).into_iter()).collect();
        let mut joined = Vec::new();
        let mut turn = 0;
        while let Some(row) = slices[turn].next() {
            joined.push(row);
            turn = (turn + 1) % slices.len();
        }
        prop_assert!(slices.iter_mut().all(|slice| slice.next().is_none()));
        prop_assert_eq!(joined, rows(&text(&whole).0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_time_range_breaks_a_simulation(
        which in 0..UseCase::NAMES.len(),
        start_ns: i64,
        end_ns: i64,
        interval_ns in any::<i64>().prop_filter("an interval", |interval| *interval != 0),
        initial_scale: u64,
        max_points in 1..500_u64,
    ) {
        let (_, use_case) = UseCase::NAMES[which];
        let start = Config { start_ns, end_ns, interval_ns, ..Config::new(use_case, 1) };
        let config = Config { scale: 3, initial_scale, max_points, ..start };
        let (_, written) = text(&config);
        prop_assert!(written.rows <= max_points + 10); // trucks may run a batch beyond the end
    }
}

#[test]
fn the_text_of_a_block_does_not_depend_on_the_texts_before_it() {
    let mut simulation = Simulation::new(&short(UseCase::Devops, 3, 700, 3)).expect("good");
    let catalog = simulation.catalog().clone();
    let (mut block, mut one_by_one, mut together) = (Block::default(), Vec::new(), Text::default());
    while simulation.fill(&mut block) {
        let mut fresh = Text::default();
        catalog.format(&block, &mut fresh);
        catalog.format(&block, &mut together);
        one_by_one.extend_from_slice(fresh.as_bytes());
    }
    assert_eq!(one_by_one.len(), together.as_bytes().len());
    assert!(one_by_one == together.as_bytes());
}

#[test]
fn what_cannot_be_generated_is_refused_with_the_way_out() {
    let good = Config::new(UseCase::DevopsGeneric, 1);
    let refused = |config: Config| {
        Simulation::new(&config)
            .err()
            .map(|error| error.to_string())
    };
    for (config, part) in [
        (
            Config {
                scale: 0,
                ..good.clone()
            },
            "number of hosts",
        ),
        (
            Config {
                scale: 1 << 32,
                ..good.clone()
            },
            "at most 4294967295",
        ),
        (
            Config {
                interval_ns: 0,
                ..good.clone()
            },
            "time between two rows",
        ),
        (
            Config {
                groups: 0,
                ..good.clone()
            },
            "0 groups",
        ),
        (
            Config {
                group: 2,
                groups: 2,
                ..good.clone()
            },
            "group 2 does not exist",
        ),
        (
            Config {
                max_metrics: 0,
                ..good.clone()
            },
            "from 1 to",
        ),
    ] {
        assert!(
            refused(config.clone()).is_some_and(|text| text.contains(part)),
            "{config:?}"
        );
    }
    assert_eq!(refused(good), None);
    let unknown = UseCase::from_name("iots");
    assert_eq!(unknown, Err(ConfigError::UseCase("iots".to_owned())));
}

/// An output that takes so many bytes and then is full.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        match taken {
            0 => Err(std::io::ErrorKind::StorageFull.into()),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    let config = short(UseCase::Devops, 1, 10, 10);
    let failure = write(&config, &mut Full(50_000)).expect_err("the output is full");
    let WriteError::Output { bytes, source } = failure else {
        panic!("{failure}")
    };
    assert!(bytes <= 50_000);
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
}
