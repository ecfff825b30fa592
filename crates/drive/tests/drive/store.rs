//! A server that stores what is copied into it, and can fail and die as a test wants.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::harness::{error, message, ready};

/// Committed rows of each table, as lines of COPY's text format.
pub(crate) type Tables = BTreeMap<String, Vec<Vec<u8>>>;

/// What goes wrong; counted over all connections, from 1.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Trouble {
    /// This COPY fails after its data.
    pub(crate) copy: Option<usize>,
    /// This COPY is refused before its data.
    pub(crate) refusal: Option<usize>,
    /// This COMMIT fails with a serialization failure.
    pub(crate) conflict: Option<usize>,
    /// The server dies instead of answering this COMMIT, which it has carried out.
    pub(crate) death: Option<usize>,
}

#[derive(Debug, Default)]
struct State {
    tables: Tables,
    /// Batch and rows.
    ledger: Vec<(u64, u64)>,
    trouble: Trouble,
    copies: usize,
    commits: usize,
    dead: bool,
    connections: Vec<TcpStream>,
}

pub(crate) struct Store {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl Store {
    pub(crate) fn new(trouble: Trouble) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            trouble,
            ..State::default()
        }));
        let (accepting, shared) = (listener.try_clone().unwrap(), Arc::clone(&state));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let shared = Arc::clone(&shared);
                let known = stream.try_clone().unwrap();
                shared.lock().unwrap().connections.push(known);
                thread::spawn(move || {
                    // Connections that break are what some tests are about.
                    let _ = serve(&stream, &shared);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Self {
            port,
            state,
            listener,
            thread: Some(thread),
        }
    }

    /// It works from now on.
    pub(crate) fn mend(&self) {
        let mut state = self.state.lock().unwrap();
        (state.trouble, state.dead) = (Trouble::default(), false);
    }

    /// The tables, their rows sorted, and what the ledger says, sorted.
    pub(crate) fn content(&self) -> (Tables, Vec<(u64, u64)>) {
        let state = self.state.lock().unwrap();
        let mut tables = state.tables.clone();
        for rows in tables.values_mut() {
            rows.sort_unstable();
        }
        let mut ledger = state.ledger.clone();
        ledger.sort_unstable();
        (tables, ledger)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = socket2::SockRef::from(&self.listener).shutdown(Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// One transaction.
#[derive(Default)]
struct Open {
    tables: Tables,
    ledger: Option<(u64, u64)>,
    failed: bool,
}

fn serve(stream: &TcpStream, shared: &Mutex<State>) -> std::io::Result<()> {
    let (mut input, mut output) = (BufReader::new(stream), stream);
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    input.read_exact(&mut startup)?;
    output.write_all(&[message(b'R', &[0; 4]), ready(b'I')].concat())?;
    let mut open = Open::default();
    loop {
        let (tag, body) = read(&mut input)?;
        match tag {
            b'Q' => {}
            // What is left of a COPY that was refused.
            b'd' | b'c' => continue,
            _ => return Ok(()),
        }
        let sql = String::from_utf8(body[..body.len() - 1].to_vec()).unwrap();
        let words: Vec<&str> = sql.split([' ', '(', ')', ',', '"']).collect();
        let answer = match words[0] {
            "BEGIN" => {
                open = Open::default();
                done("BEGIN", b'T')
            }
            "COMMIT" => match commit(std::mem::take(&mut open), shared) {
                Some(answer) => answer,
                None => return Ok(()),
            },
            _ if open.failed => failure("25P02", "the transaction is aborted", b'E'),
            "COPY" => copy(words[2], &mut open, shared, &mut input, &mut output)?,
            "INSERT" => {
                let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
                open.ledger = Some((numbers.next().unwrap(), numbers.next().unwrap()));
                done("INSERT 0 1", b'T')
            }
            _ => failure("42601", &sql, b'E'),
        };
        output.write_all(&answer)?;
    }
}

fn copy(
    table: &str,
    open: &mut Open,
    shared: &Mutex<State>,
    input: &mut impl Read,
    output: &mut impl Write,
) -> std::io::Result<Vec<u8>> {
    let (number, trouble) = {
        let mut state = shared.lock().unwrap();
        state.copies += 1;
        (state.copies, state.trouble)
    };
    if trouble.refusal == Some(number) {
        open.failed = true;
        return Ok(failure("42P01", "there is no such table", b'E'));
    }
    output.write_all(&message(b'G', &[0, 0, 0]))?;
    let mut data = Vec::new();
    while let (b'd', piece) = read(input)? {
        data.extend(piece);
    }
    if trouble.copy == Some(number) {
        open.failed = true;
        return Ok(failure("23505", "the key is there already", b'E'));
    }
    let rows = open.tables.entry(table.to_owned()).or_default();
    let before = rows.len();
    rows.extend(data.split_inclusive(|&byte| byte == b'\n').map(Vec::from));
    Ok(done(&format!("COPY {}", rows.len() - before), b'T'))
}

/// None when the server dies.
fn commit(open: Open, shared: &Mutex<State>) -> Option<Vec<u8>> {
    let mut state = shared.lock().unwrap();
    if state.dead {
        return None;
    }
    if open.failed {
        return Some(done("ROLLBACK", b'I'));
    }
    state.commits += 1;
    if state.trouble.conflict == Some(state.commits) {
        return Some(failure("40001", "could not serialize access", b'I'));
    }
    for (table, rows) in open.tables {
        state.tables.entry(table).or_default().extend(rows);
    }
    state.ledger.extend(open.ledger);
    if state.trouble.death == Some(state.commits) {
        state.dead = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        return None;
    }
    Some(done("COMMIT", b'I'))
}

fn read(input: &mut impl Read) -> std::io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 5];
    input.read_exact(&mut header)?;
    let [tag, a, b, c, d] = header;
    let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 4];
    input.read_exact(&mut body)?;
    Ok((tag, body))
}

fn done(tag: &str, status: u8) -> Vec<u8> {
    let tag = format!("{tag}\0");
    [message(b'C', tag.as_bytes()), ready(status)].concat()
}

fn failure(sqlstate: &str, words: &str, status: u8) -> Vec<u8> {
    [error("ERROR", sqlstate, words), ready(status)].concat()
}
