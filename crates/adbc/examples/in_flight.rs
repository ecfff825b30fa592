//! How many of many clients have a query under way in the mean: throughput times latency (Little's law).
//!
//! `in_flight SPEC CLIENTS SECONDS SETUP QUERY`: SPEC is the JSON of `loadstone_adbc::Spec`, SETUP are statements that are
//! divided by `;`, `{}` in QUERY is another number for each query. Prints queries, queries per second, mean latency in
//! milliseconds and the mean number of queries under way, divided by spaces.

#![expect(clippy::print_stdout, reason = "its results")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use loadstone_adbc::{AdbcLibrary, ClientSpec, Database};
use loadstone_drive::clock::now_ns;
use loadstone_drive::library::{Call, Library, LibraryClient, LibraryError};

/// Queries and the nanoseconds that they took together.
type Totals = (u64, u64);

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [spec, clients, seconds, setup, query] = given.as_slice() else {
        return Err("SPEC CLIENTS SECONDS SETUP QUERY".into());
    };
    let database = Arc::new(Database::open(serde_json::from_str(spec)?)?);
    let mut first = database.connect()?;
    for sql in setup.split(';') {
        first.query(sql)?;
    }
    let library = AdbcLibrary::new(database, ClientSpec::default());
    let opened: Result<Vec<_>, _> = (0..clients.parse()?).map(|n| library.connect(n)).collect();
    let begin_ns = now_ns();
    let end_ns = begin_ns + seconds.parse::<u64>()? * 1_000_000_000;
    let (count, busy_ns) = together(opened?, query, end_ns)?;
    report(count, busy_ns, now_ns() - begin_ns);
    Ok(())
}

fn together(
    clients: Vec<Box<dyn LibraryClient>>,
    query: &str,
    end_ns: u64,
) -> Result<Totals, LibraryError> {
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        let asking: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(|| ask(client, query, &next, end_ns)))
            .collect();
        asking.into_iter().try_fold((0, 0), |(count, ns), thread| {
            let found = thread
                .join()
                .map_err(|_| LibraryError::new("", "a client broke"))??;
            Ok((count + found.0, ns + found.1))
        })
    })
}

fn ask(
    mut client: Box<dyn LibraryClient>,
    query: &str,
    next: &AtomicU64,
    end_ns: u64,
) -> Result<Totals, LibraryError> {
    let (mut count, mut busy_ns) = (0, 0);
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed) * 7919 % 900_000;
        let sql = query.replace("{}", &number.to_string());
        let begin_ns = now_ns();
        if begin_ns >= end_ns {
            return Ok((count, busy_ns));
        }
        client.query(&sql, &Call::default())?.for_each(drop);
        busy_ns += now_ns() - begin_ns;
        count += 1;
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn report(count: u64, busy_ns: u64, wall_ns: u64) {
    let elapsed = wall_ns as f64 / 1e9;
    println!(
        "{count} {:.0} {:.3} {:.1}",
        count as f64 / elapsed,
        busy_ns as f64 / 1e6 / count.max(1) as f64,
        busy_ns as f64 / wall_ns as f64
    );
}
