use tempfile::TempDir;

use super::{CHUNK_RECORDS, ClientLedger, LedgerSpec, State};
use crate::error::DriveError;

fn spec(folder: &TempDir, run: u64) -> LedgerSpec {
    LedgerSpec {
        folder: folder.path().to_owned(),
        run,
        insert: String::new(),
    }
}

fn book(ledger: &mut ClientLedger, state: State) -> (u64, u32) {
    ledger.make_room().unwrap();
    let planned = ledger.plan();
    ledger.note(state);
    planned
}

/// State, checksum and time of each record, from the bytes.
fn records(folder: &TempDir) -> Vec<(u8, u32, u64)> {
    let bytes = std::fs::read(folder.path().join("client-3.ledger")).unwrap();
    bytes[64..]
        .chunks_exact(16)
        .map(|r| {
            let crc = u32::from_le_bytes(r[4..8].try_into().unwrap());
            (r[0], crc, u64::from_le_bytes(r[8..].try_into().unwrap()))
        })
        .take_while(|&(state, ..)| state != 0)
        .collect()
}

#[test]
fn another_drive_goes_on_behind_the_last_record() {
    let folder = TempDir::new().unwrap();
    let first = {
        let mut ledger = ClientLedger::open(&spec(&folder, 9), 3).unwrap();
        book(&mut ledger, State::Refused);
        let first = book(&mut ledger, State::Acknowledged);
        ledger.note_time(77);
        first
    };
    let mut ledger = ClientLedger::open(&spec(&folder, 9), 3).unwrap();
    let (seq, crc) = book(&mut ledger, State::Sent);
    assert_eq!((first.0, seq), (2, 3));
    let found = records(&folder);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1], (3, first.1, 77));
    assert_eq!(found[2], (2, crc, 0));
}

#[test]
fn records_go_on_beyond_a_chunk() {
    let folder = TempDir::new().unwrap();
    let count = 2 * CHUNK_RECORDS + 5;
    {
        let mut ledger = ClientLedger::open(&spec(&folder, 1), 3).unwrap();
        for _ in 0..count {
            book(&mut ledger, State::Acknowledged);
        }
    }
    let found = records(&folder);
    assert_eq!(found.len() as u64, count);
    assert!(found.iter().all(|&(state, ..)| state == 3));
    let mut ledger = ClientLedger::open(&spec(&folder, 1), 3).unwrap();
    assert_eq!(book(&mut ledger, State::Planned).0, count + 1);
}

#[test]
fn a_ledger_may_end_at_the_last_record_of_a_chunk() {
    let folder = TempDir::new().unwrap();
    {
        let mut ledger = ClientLedger::open(&spec(&folder, 1), 3).unwrap();
        for _ in 0..CHUNK_RECORDS - 4 {
            book(&mut ledger, State::Acknowledged);
        }
    }
    let mut ledger = ClientLedger::open(&spec(&folder, 1), 3).unwrap();
    assert_eq!(book(&mut ledger, State::Sent).0, CHUNK_RECORDS - 3);
}

#[test]
fn the_ledger_of_another_run_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(ClientLedger::open(&spec(&folder, 1), 3).unwrap());
    let Err(DriveError::Output { source, .. }) = ClientLedger::open(&spec(&folder, 2), 3) else {
        unreachable!("it was taken")
    };
    assert!(source.to_string().contains("another run"), "{source}");
}

#[test]
fn checksums_differ_between_clients_and_runs() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let crcs = [(&one, 1, 3), (&one, 1, 4), (&two, 2, 3)].map(|(folder, run, client)| {
        let mut ledger = ClientLedger::open(&spec(folder, run), client).unwrap();
        book(&mut ledger, State::Planned).1
    });
    assert!(
        crcs[0] != crcs[1] && crcs[0] != crcs[2] && crcs[1] != crcs[2],
        "{crcs:?}"
    );
}
