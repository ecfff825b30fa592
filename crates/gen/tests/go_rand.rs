//! Go's random streams against values printed by Go 1.26.

use loadstone_gen::tsbs::go_rand::GoRand;

#[rustfmt::skip]
const UINT64: [(i64, [u64; 5]); 6] = [
    (0, [8_717_895_732_742_165_505, 2_259_404_117_704_393_152, 6_050_128_673_802_995_827, 9_724_605_487_393_973_602, 12_613_765_599_614_152_010]),
    (1, [5_577_006_791_947_779_410, 8_674_665_223_082_153_551, 15_352_856_648_520_921_629, 13_260_572_831_089_785_859, 3_916_589_616_287_113_937]),
    (123, [5_361_704_182_646_325_489, 9_465_248_486_993_754_554, 2_305_561_650_894_865_143, 14_903_627_069_197_581_691, 2_116_592_265_311_177_487]),
    (-1, [12_868_334_305_193_165_484, 9_773_543_399_016_688_047, 3_094_056_749_125_766_625, 5_185_619_287_625_335_803, 14_527_071_429_294_890_285]),
    (2_147_483_647, [8_717_895_732_742_165_505, 2_259_404_117_704_393_152, 6_050_128_673_802_995_827, 9_724_605_487_393_973_602, 12_613_765_599_614_152_010]),
    (1_099_511_627_776, [14_693_609_398_577_170_170, 6_322_525_149_314_491_254, 1_177_463_506_020_107_830, 1_565_541_666_764_780_662, 16_899_324_040_616_703_812]),
];

#[test]
fn every_seed_gives_the_stream_of_go() {
    for (seed, expected) in UINT64 {
        let mut rng = GoRand::new(seed);
        assert_eq!(expected.map(|_| rng.next_u64()), expected, "seed {seed}");
    }
}

#[test]
fn the_stream_holds_far_from_its_start() {
    let mut rng = GoRand::new(123);
    let millionth = (0..1_000_000).map(|_| rng.next_u64()).last();
    assert_eq!(millionth, Some(15_541_713_977_925_606_328));
}

#[test]
fn integers_below_a_bound_are_those_of_go() {
    let mut rng = GoRand::new(123);
    assert_eq!(
        [(); 10].map(|()| rng.intn(10)),
        [5, 9, 3, 5, 9, 9, 5, 5, 1, 1]
    );
    let mut rng = GoRand::new(123);
    assert_eq!(
        [(); 10].map(|()| rng.intn(4)),
        [3, 1, 3, 3, 3, 3, 3, 3, 1, 3]
    );
    let mut rng = GoRand::new(123);
    let expected = [5489, 18746, 5143, 5883, 17487, 6563];
    assert_eq!(expected.map(|_| rng.int63n(20_000)), expected);
}

/// Mixes values so that one wrong bit anywhere shows.
fn fold(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0_u64, |sum, value| {
        sum.wrapping_mul(0x0100_0000_01b3) ^ value
    })
}

#[test]
fn uniform_doubles_are_those_of_go() {
    let mut rng = GoRand::new(123);
    let expected = [
        0.581_317_132_304_976_2,
        0.026_224_297_271_376_255,
        0.249_969_495_069_947_9,
        0.615_854_484_633_778_9,
        0.229_481_393_231_639_38,
    ];
    let bits = |value: f64| value.to_bits();
    assert_eq!(expected.map(|_| bits(rng.float64())), expected.map(bits));
}

#[test]
fn a_million_normal_draws_are_those_of_go() {
    let mut rng = GoRand::new(123);
    assert_eq!(
        fold((0..1_000_000).map(|_| rng.norm_float64().to_bits())),
        NORMAL_DIGEST
    );
}

#[test]
fn normal_draws_are_the_same_one_by_one_and_in_runs() {
    let (mut one, mut many) = (GoRand::new(7), GoRand::new(7));
    for length in 0..300 {
        let mut run = vec![0.0; length];
        many.fill_norm(&mut run);
        assert!(
            run.iter()
                .all(|value| value.to_bits() == one.norm_float64().to_bits())
        );
    }
    assert_eq!(one.next_u64(), many.next_u64());
}

const NORMAL_DIGEST: u64 = 0xb267_902d_d867_4494;
