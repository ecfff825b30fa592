//! The random streams against numbers that `pgbench` 15.18 printed, and their bounds.
//!
//! The numbers come from scripts of `\set x debug(…)` run with `-n -c 1 --random-seed=SEED`.

use loadstone_gen::random::{Prng, SeedSequence, Streams, hash_fnv1a, hash_murmur2, permute};
use proptest::prelude::*;

/// The script was run twice (`-t 2`): twelve draws per transaction.
fn draws(prng: &mut Prng) -> [i64; 12] {
    [
        prng.uniform(10, 19),
        prng.uniform(1, 100_000),
        prng.uniform(-5000, 5000),
        prng.uniform(-4_611_686_018_427_387_904, 4_611_686_018_427_387_902),
        prng.uniform(1, 2),
        prng.exponential(100, 199, 10.0),
        prng.exponential(1, 1_000_000, 0.001),
        prng.gaussian(1000, 1999, 10.0),
        prng.gaussian(-1000, 1_000_000, 2.0),
        prng.zipfian(1, 10, 1.5),
        prng.zipfian(1, 1_000_000, 1.1),
        prng.zipfian(1, 1_000_000, 1.001),
    ]
}

/// Seed, and what the first and the second transaction drew.
#[rustfmt::skip]
const DRAWS: [(u64, [[i64; 12]; 2]); 5] = [
    (5432, [
        [17, 44595, -1085, -56_143_725_684_872_788, 2, 101, 689_412, 1422, 592_676, 1, 10, 142],
        [19, 43857, 1129, 968_272_478_366_869_837, 1, 100, 988_522, 1487, 934_431, 1, 12812, 309_036],
    ]),
    (0, [
        [13, 67750, 3575, -2_431_961_755_330_818_410, 2, 100, 331_694, 1481, 308_714, 1, 11, 16],
        [13, 93594, 1915, -1_973_084_527_754_196_238, 1, 102, 621_419, 1538, 501_926, 5, 71, 81555],
    ]),
    (1, [
        [10, 77088, 3463, 1_498_884_835_073_214_339, 1, 102, 912_234, 1485, 380_265, 1, 30053, 2],
        [14, 55896, 3335, 592_906_304_911_421_722, 2, 100, 462_415, 1433, 994_337, 1, 1, 8],
    ]),
    (42, [
        [10, 38645, -416, -1_938_993_272_584_626_656, 1, 137, 709_383, 1513, 141_167, 1, 370, 158],
        [15, 8760, -2057, -3_439_222_158_113_192_541, 1, 102, 312_352, 1441, 303_164, 2, 52489, 1990],
    ]),
    (u64::MAX, [
        [17, 87259, 3941, 3_969_633_739_810_310_747, 2, 108, 744_508, 1497, 599_240, 1, 95, 5],
        [17, 42076, -365, -3_750_875_780_424_052_518, 2, 102, 387_341, 1480, 296_751, 6, 3627, 177],
    ]),
];

#[test]
fn distributions_draw_what_pgbench_draws() {
    for (seed, transactions) in DRAWS {
        let mut prng = Streams::new(seed, 1, 1, false).clients[0];
        for (number, known) in transactions.iter().enumerate() {
            assert_eq!(
                draws(&mut prng),
                *known,
                "transaction {number} of seed {seed}"
            );
        }
    }
}

#[test]
fn the_published_values_of_seed_5432_come_out() {
    let mut prng = SeedSequence::new(5432).next_prng();
    assert_eq!(prng.uniform(10, 19), 17);
    assert_eq!(prng.exponential(100, 199, 10.0), 104);
    assert_eq!(prng.gaussian(1000, 1999, 10.0), 1498);
}

#[test]
fn permutations_are_those_of_pgbench() {
    let known = [
        (0, 2, 0, 0),
        (1, 2, 0, 1),
        (2, 3, 5432, 2),
        (5, 10, 1, 3),
        (999, 1000, -1, 160),
        (-1, 1000, 7, 370),
        (123_456_789, 4_294_967_296, 5, 3_614_326_938),
        (0, i64::MAX, 5432, 8_941_447_457_790_205_183),
        (i64::MAX, i64::MAX - 1, 12, 2_157_293_530_279_814_922),
        (3, 1_000_003, 0, 373_749),
    ];
    for (value, size, seed, place) in known {
        assert_eq!(
            permute(value, size, seed),
            place,
            "permute({value}, {size}, {seed})"
        );
    }
    assert_eq!(permute(7, 1, 3), 0);
    assert_eq!(permute(7, -5, 3), 0);
}

#[test]
fn hashes_are_those_of_pgbench() {
    let known = [
        (0, 0, -6_284_781_860_667_377_211, 8_217_090_173_679_840_641),
        (
            10,
            5432,
            -7_793_829_335_365_542_153,
            -5_817_877_081_768_721_676,
        ),
        (
            -10,
            -5432,
            4_579_262_773_458_389_724,
            5_235_125_578_500_036_403,
        ),
        (
            i64::MAX,
            i64::MIN,
            933_822_423_779_008_957,
            -8_969_732_497_821_252_539,
        ),
        (1, 1, -6_284_781_860_667_377_211, 5_833_352_340_892_006_082),
    ];
    for (value, seed, fnv1a, murmur2) in known {
        assert_eq!(
            hash_fnv1a(value, seed),
            fnv1a,
            "hash_fnv1a({value}, {seed})"
        );
        assert_eq!(
            hash_murmur2(value, seed),
            murmur2,
            "hash_murmur2({value}, {seed})"
        );
    }
}

/// `pgbench -f a.sql@1 -f b.sql@3 -t 6 -c 3 -j 2 --random-seed=77`: which client drew what, and
/// which script the second thread, whose only client is the third, chose each time.
#[test]
fn clients_and_threads_are_seeded_in_the_order_of_pgbench() {
    let mut streams = Streams::new(77, 3, 2, false);
    let mut draw = |client: usize| -> Vec<i64> {
        (0..6)
            .map(|_| streams.clients[client].uniform(1, 1_000_000))
            .collect()
    };
    assert_eq!(
        draw(0),
        [448_490, 906_572, 958_446, 450_339, 114_902, 219_600]
    );
    assert_eq!(
        draw(1),
        [137_391, 677_493, 111_956, 498_827, 236_704, 750_835]
    );
    assert_eq!(
        draw(2),
        [44726, 269_120, 816_299, 201_087, 428_589, 855_080]
    );
    let choose = &mut streams.threads[1].choose;
    let scripts: Vec<_> = (0..6)
        .map(|_| i32::from(choose.uniform(0, 3) >= 1))
        .collect();
    assert_eq!(scripts, [0, 0, 1, 1, 0, 1]);
}

/// The values that `debug(:default_seed)` of pgbench 15.18 shows.
#[test]
fn the_default_seed_follows_the_clients() {
    assert_eq!(
        Streams::new(5432, 1, 1, false).default_seed,
        Some(7_590_783_070_443_337_668)
    );
    assert_eq!(
        Streams::new(0, 1, 1, false).default_seed,
        Some(7_868_822_567_099_391_496)
    );
}

#[test]
fn a_default_seed_of_the_user_is_not_drawn() {
    let drawn = Streams::new(9, 2, 1, false);
    let given = Streams::new(9, 2, 1, true);
    assert_eq!(given.default_seed, None);
    assert_eq!(given.clients, drawn.clients);
    let seed = drawn.default_seed.map(i64::cast_unsigned);
    assert_eq!(seed.map(Prng::from_seed), Some(given.threads[0].choose));
}

#[test]
fn poisson_gaps_have_the_wanted_mean() {
    let mut prng = Prng::from_seed(3);
    let draws = 100_000;
    let sum: i64 = (0..draws).map(|_| prng.poisson_gap(1000.0)).sum();
    // Standard error: 1000 / sqrt(100000), about 3.2.
    assert!((sum / draws - 1000).abs() < 16, "mean {}", sum / draws);
}

#[test]
fn a_copied_stream_repeats_itself() {
    let mut prng = Prng::from_seed(8);
    let mut copy = prng;
    assert_eq!(draws(&mut prng), draws(&mut copy));
}

proptest! {
    #[test]
    fn permute_is_a_permutation(size in 1_i64..300, seed in any::<i64>()) {
        let mut places: Vec<_> = (0..size).map(|value| permute(value, size, seed)).collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..size).collect::<Vec<_>>());
    }

    #[test]
    fn permute_stays_in_range(value in any::<i64>(), size in 1_i64.., seed in any::<i64>()) {
        prop_assert!((0..size).contains(&permute(value, size, seed)));
    }

    #[test]
    fn draws_stay_in_range(seed in any::<u64>(), min in any::<i64>(), width in 0_u32..) {
        let min = min.clamp(i64::MIN / 2, i64::MAX / 2);
        let max = min + i64::from(width);
        let mut prng = Prng::from_seed(seed);
        let range = min..=max;
        prop_assert!(range.contains(&prng.uniform(min, max)));
        prop_assert!(range.contains(&prng.exponential(min, max, 3.0)));
        prop_assert!(range.contains(&prng.gaussian(min, max, 2.0)));
        prop_assert!(range.contains(&prng.zipfian(min, max, 1.2)));
        prop_assert!((0.0..1.0).contains(&prng.double()));
    }

    #[test]
    fn nothing_panics_on_ranges_beyond_64_bits(seed in any::<u64>(), min in any::<i64>(), max in any::<i64>()) {
        let mut prng = Prng::from_seed(seed);
        prng.uniform(min, max);
        prng.exponential(min, max, 3.0);
        prng.gaussian(min, max, 2.0);
    }
}
