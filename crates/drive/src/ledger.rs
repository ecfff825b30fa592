//! What a client knows of its commits: a file for each client, mapped into memory, with a record for each
//! transaction. It outlives this process, so that what the server acknowledged can be looked for after any end.
//!
//! The file: magic, version, client and run in the first 64 bytes, then records of 16 bytes. All numbers are
//! little-endian.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memmap2::{MmapMut, MmapOptions};
use nix::fcntl::posix_fallocate;
use serde::Deserialize;

use crate::error::DriveError;

const MAGIC: &[u8; 8] = b"LSLEDGER";
const VERSION: u32 = 1;
const RECORD_BYTES: usize = 16;
/// Records' worth of bytes in front of the first.
const HEADER_RECORDS: u64 = 4;
/// Records that are mapped at once.
const CHUNK_RECORDS: u64 = 16 * 1024;
const CHUNK_BYTES: usize = RECORD_BYTES * 16 * 1024;

/// Where a drive books its commits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerSpec {
    /// Folder of the files, `client-N.ledger`; those of an earlier drive of the same run are gone on with.
    pub folder: PathBuf,
    /// What the files of one run have in common.
    pub run: u64,
    /// The statement that stores a row in the server, before each COMMIT; it may use `:loadstone_client`,
    /// `:loadstone_seq` and `:loadstone_crc`.
    pub insert: String,
}

/// How far a transaction is; 0 is a record that was never used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Its COMMIT was never sent.
    Planned = 1,
    /// Its COMMIT may have been sent, and no answer was read.
    Sent = 2,
    Acknowledged = 3,
    /// The server answered with an error.
    Refused = 4,
}

/// The ledger of one client.
#[derive(Debug)]
pub(crate) struct ClientLedger {
    file: File,
    path: PathBuf,
    map: MmapMut,
    chunk: u64,
    client: u32,
    run: u64,
    seq: u64,
    /// Where the record of `seq` begins in `map`.
    at: usize,
    state: State,
}

impl ClientLedger {
    /// Open or create the ledger of a client.
    pub(crate) fn open(spec: &LedgerSpec, client: usize) -> Result<Self, DriveError> {
        let path = spec.folder.join(format!("client-{client}.ledger"));
        let client = u32::try_from(client).unwrap_or(u32::MAX);
        Self::open_at(&path, client, spec.run).map_err(|source| DriveError::Output { path, source })
    }

    fn open_at(path: &Path, client: u32, run: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let header = header(client, run);
        if file.metadata()?.len() == 0 {
            let mut map = chunk_of(&file, 0)?;
            map[..header.len()].copy_from_slice(&header);
        } else {
            check_header(&file, &header)?;
        }
        let seq = last_seq(&file)?;
        let chunk = (seq + HEADER_RECORDS) / CHUNK_RECORDS;
        Ok(Self {
            map: chunk_of(&file, chunk)?,
            file,
            path: path.to_owned(),
            chunk,
            client,
            run,
            seq,
            at: 0,
            state: State::Refused,
        })
    }

    /// Make room for the next transaction.
    pub(crate) fn make_room(&mut self) -> io::Result<()> {
        let chunk = (self.seq + HEADER_RECORDS) / CHUNK_RECORDS;
        if chunk != self.chunk {
            self.map = chunk_of(&self.file, chunk)?;
            self.chunk = chunk;
        }
        Ok(())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Book the next transaction, for which there is room; returns its number, from 1, and its checksum.
    pub(crate) fn plan(&mut self) -> (u64, u32) {
        let slot = self.seq + HEADER_RECORDS;
        debug_assert_eq!(slot / CHUNK_RECORDS, self.chunk, "no room was made");
        self.seq += 1;
        self.at = (slot % CHUNK_RECORDS) as usize * RECORD_BYTES;
        let crc = checksum(self.run, self.client, self.seq);
        self.map[self.at + 4..self.at + 8].copy_from_slice(&crc.to_le_bytes());
        self.note(State::Planned);
        (self.seq, crc)
    }

    /// How far the latest transaction is.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Book how far the latest transaction is.
    pub(crate) fn note(&mut self, state: State) {
        self.state = state;
        self.map[self.at] = state as u8;
    }

    /// Book when the answer to its COMMIT was read.
    pub(crate) fn note_time(&mut self, ns: u64) {
        self.map[self.at + 8..self.at + 16].copy_from_slice(&ns.to_le_bytes());
    }
}

fn header(client: u32, run: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&client.to_le_bytes());
    bytes[16..].copy_from_slice(&run.to_le_bytes());
    bytes
}

fn check_header(file: &File, wanted: &[u8; 24]) -> io::Result<()> {
    let mut found = [0; 24];
    file.read_exact_at(&mut found, 0)?;
    if found == *wanted {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "this is the ledger of another run or client",
    ))
}

/// What a row's checksum is of.
fn checksum(run: u64, client: u32, seq: u64) -> u32 {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&run.to_le_bytes());
    bytes[8..12].copy_from_slice(&client.to_le_bytes());
    bytes[12..].copy_from_slice(&seq.to_le_bytes());
    crc32fast::hash(&bytes)
}

/// Map a chunk; its blocks are allocated first, for a full disk would end the process at a write.
fn chunk_of(file: &File, chunk: u64) -> io::Result<MmapMut> {
    let offset = chunk * CHUNK_BYTES as u64;
    let from = i64::try_from(offset).map_err(io::Error::other)?;
    let length = i64::try_from(CHUNK_BYTES).map_err(io::Error::other)?;
    posix_fallocate(file, from, length)?;
    #[expect(unsafe_code, reason = "nobody else shortens the file of a run")]
    // SAFETY: the file is ours, and no one truncates it while the drive runs.
    unsafe {
        MmapOptions::new()
            .offset(offset)
            .len(CHUNK_BYTES)
            .map_mut(file)
    }
}

/// The number of the last record that was used; 0 when there is none. Used ones are without gaps.
fn last_seq(file: &File) -> io::Result<u64> {
    let records = file.metadata()?.len() / RECORD_BYTES as u64;
    let (mut used, mut unused) = (0, records.saturating_sub(HEADER_RECORDS) + 1);
    while unused - used > 1 {
        let middle = used.midpoint(unused);
        let mut state = [0];
        let offset = (middle - 1 + HEADER_RECORDS) * RECORD_BYTES as u64;
        file.read_exact_at(&mut state, offset)?;
        if state == [0] {
            unused = middle;
        } else {
            used = middle;
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests;
