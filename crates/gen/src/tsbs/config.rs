//! What to generate: TSBS's own parameters, checked.

use std::num::NonZeroI64;

/// The use cases of TSBS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UseCase {
    /// Hosts with nine tables, 101 fields in all.
    Devops,
    /// Hosts with the ten fields of the table `cpu`.
    CpuOnly,
    /// Hosts with one field of the table `cpu`.
    CpuSingle,
    /// Hosts with one table of 1 to `max_metrics` fields each, half of them short-lived.
    DevopsGeneric,
    /// Trucks with two tables, and with missing, late and incomplete rows.
    Iot,
}

impl UseCase {
    /// Every use case with the name that TSBS's `--use-case` gives it.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("cpu-only", Self::CpuOnly),
        ("cpu-single", Self::CpuSingle),
        ("devops", Self::Devops),
        ("iot", Self::Iot),
        ("devops-generic", Self::DevopsGeneric),
    ];

    /// The use case of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_name(name: &str) -> Result<Self, ConfigError> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, use_case)| *use_case)
            .ok_or_else(|| ConfigError::UseCase(name.to_owned()))
    }
}

/// The parameters of one generation, as TSBS's flags give them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// What is simulated.
    pub use_case: UseCase,
    /// Seed of the stream. TSBS itself takes 0 as "choose one by the clock": the caller does that.
    pub seed: i64,
    /// Number of hosts or trucks.
    pub scale: u64,
    /// How many of them report in the first epoch; 0 means all (`devops-generic`: half).
    pub initial_scale: u64,
    /// First timestamp, nanoseconds since 1970 UTC.
    pub start_ns: i64,
    /// End of the time range, exclusive, nanoseconds since 1970 UTC.
    pub end_ns: i64,
    /// Time between two rows of one device.
    pub interval_ns: i64,
    /// Most rows to simulate, counting those that are not written; 0 means no limit.
    pub max_points: u64,
    /// Most fields of one host, for `devops-generic` only.
    pub max_metrics: u64,
    /// Which of the interleaved groups of rows to write.
    pub group: u32,
    /// Number of interleaved groups.
    pub groups: u32,
}

impl Config {
    /// TSBS's defaults: one device, the first day of 2016, a row each 10 s, everything written.
    #[must_use]
    pub fn new(use_case: UseCase, seed: i64) -> Self {
        Self {
            use_case,
            seed,
            scale: 1,
            initial_scale: 0,
            start_ns: 1_451_606_400_000_000_000,
            end_ns: 1_451_692_800_000_000_000,
            interval_ns: 10_000_000_000,
            max_points: 0,
            max_metrics: 100,
            group: 0,
            groups: 1,
        }
    }

    /// Checks what no simulation can work with, and settles the defaults.
    pub(super) fn settle(&self) -> Result<Settled, ConfigError> {
        if self.scale == 0 {
            return Err(ConfigError::NoScale);
        }
        let devices = u32::try_from(self.scale).map_err(|_| ConfigError::Scale(self.scale))?;
        let interval = NonZeroI64::new(self.interval_ns).ok_or(ConfigError::NoInterval)?;
        if self.group >= self.groups {
            return Err(ConfigError::Group {
                group: self.group,
                groups: self.groups,
            });
        }
        let generic = self.use_case == UseCase::DevopsGeneric;
        if generic && !(1..=1_000_000).contains(&self.max_metrics) {
            return Err(ConfigError::Metrics(self.max_metrics));
        }
        let initial = match self.initial_scale {
            0 => self.scale,
            given => given,
        };
        let halved = generic && initial == self.scale;
        Ok(Settled {
            devices,
            initial: if halved {
                (self.scale / 2).max(1)
            } else {
                initial
            },
            epochs: self
                .end_ns
                .saturating_sub(self.start_ns)
                .wrapping_div(interval.get())
                .cast_unsigned(),
            limit: if self.max_points == 0 {
                u64::MAX
            } else {
                self.max_points
            },
        })
    }
}

/// A checked configuration's derived numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) devices: u32,
    /// Devices that report in the first epoch; may exceed `devices`.
    pub(super) initial: u64,
    pub(super) epochs: u64,
    /// Most points, written or not.
    pub(super) limit: u64,
}

/// Why a configuration cannot be generated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Unknown name.
    #[error(
        "use case {0:?} is unknown; choose cpu-only, cpu-single, devops, iot or devops-generic"
    )]
    UseCase(String),
    /// No devices.
    #[error("scale cannot be 0; set the number of hosts or trucks")]
    NoScale,
    /// More devices than can be numbered.
    #[error("a scale of {0} is too large; at most 4294967295 devices can be simulated")]
    Scale(u64),
    /// No time between rows.
    #[error("log interval cannot be 0; set the time between two rows of one device, such as 10s")]
    NoInterval,
    /// A group beyond the last.
    #[error(
        "interleaved group {group} does not exist; with {groups} groups, choose one from 0 to that number minus one"
    )]
    Group {
        /// The group requested.
        group: u32,
        /// How many there are.
        groups: u32,
    },
    /// A count of fields out of range.
    #[error(
        "at most {0} fields per host cannot be generated; set max-metric-count from 1 to 1000000"
    )]
    Metrics(u64),
}
