use proptest::prelude::*;

use super::*;

/// Seen with sysbench 1.0.20, one thread, `--rand-seed=42`: first event of a script that prints what it draws.
#[test]
fn a_seed_gives_the_numbers_of_sysbench() {
    let mut stream = Stream::of_clients(42, 1)[0];
    let draws = Distributions::new(&Settings::default());
    let stream = &mut stream;
    assert_eq!(draws.default(stream, 1, 10_000), 4987);
    assert_eq!(Distributions::uniform(stream, 1, 10_000), 7040);
    assert_eq!(draws.gaussian(stream, 1, 10_000), 6184);
    assert_eq!(draws.special(stream, 1, 10_000), 5042);
    assert_eq!(draws.pareto(stream, 1, 10_000), 336);
    let mut text = Vec::new();
    fill(stream, b"##-@@-###", &mut text);
    assert_eq!(text, b"04-sm-565");
    assert!((stream.fraction() - 0.433_285_945_958_904_9).abs() < 1e-16);
    assert_eq!(stream.next(), 5_874_173_475_426_196_699);
}

#[test]
fn unique_numbers_come_once() {
    let alone = Unique::new(3, 0, 1);
    let of_one: Vec<u32> = (0..99_999).map(|_| alone.next()).collect();
    let hosts = (0..3).map(|host| Unique::new(3, host, 3));
    let of_all: Vec<u32> = hosts
        .flat_map(|host| (0..33_333).map(move |_| host.next()))
        .collect();
    let [mut drawn, mut shared] = [of_one, of_all];
    drawn.sort_unstable();
    shared.sort_unstable();
    assert_eq!(drawn, shared, "several hosts draw those of one");
    drawn.dedup();
    assert_eq!(drawn.len(), 99_999);
}

#[test]
fn low_ranks_are_drawn_by_their_weight() {
    let draws = Distributions::new(&Settings {
        zipfian_exp: 1.0,
        ..Settings::default()
    });
    let mut stream = Stream::of_clients(9, 1)[0];
    let mut seen = [0_u32; 5];
    for _ in 0..100_000 {
        seen[draws.zipfian(&mut stream, 10, 14) as usize - 10] += 1;
    }
    // 1 + 1/2 + 1/3 + 1/4 + 1/5 = 137/60
    for (rank, &count) in (1_u32..).zip(&seen) {
        let expected = 100_000.0 * 60.0 / 137.0 / f64::from(rank);
        assert!(
            (f64::from(count) - expected).abs() < 0.05 * expected,
            "{seen:?}"
        );
    }
}

proptest! {
    #[test]
    fn numbers_stay_in_their_range(seed: u32, low in 0..=1_000_000_u32, span in 0..1_000_000_u32) {
        let mut stream = Stream::of_clients(seed.into(), 1)[0];
        let draws = Distributions::new(&Settings::default());
        let range = low..=low + span;
        for _ in 0..20 {
            prop_assert!(range.contains(&Distributions::uniform(&mut stream, low, low + span)));
            prop_assert!(range.contains(&draws.gaussian(&mut stream, low, low + span)));
            prop_assert!(range.contains(&draws.special(&mut stream, low, low + span)));
            prop_assert!(range.contains(&draws.pareto(&mut stream, low, low + span)));
            prop_assert!(range.contains(&draws.zipfian(&mut stream, low, low + span)));
        }
    }

    #[test]
    fn formats_keep_their_length_and_what_is_no_sign(seed: u32, format: Vec<u8>) {
        let mut stream = Stream::of_clients(seed.into(), 1)[0];
        let mut text = Vec::new();
        fill(&mut stream, &format, &mut text);
        prop_assert_eq!(text.len(), format.len());
        for (&sign, &byte) in format.iter().zip(&text) {
            let fits = match sign {
                b'#' => byte.is_ascii_digit(),
                b'@' => byte.is_ascii_lowercase(),
                other => byte == other,
            };
            prop_assert!(fits);
        }
    }
}
