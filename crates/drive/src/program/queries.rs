//! Queries that were drawn beforehand, as the work of a drive.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Program;
use crate::error::DriveError;
use crate::work::{Draw, Labels};

/// The queries of a drive.
#[derive(Debug, Clone, Deserialize)]
pub struct QueriesSpec {}

/// The queries, shared by all clients.
#[derive(Debug)]
pub(crate) struct QueryWork {
    never: std::convert::Infallible,
}

impl QueryWork {
    pub(crate) fn new(_spec: &QueriesSpec) -> Result<Self, DriveError> {
        Err(DriveError::bad_spec(
            "queries cannot be driven yet".to_owned(),
            "",
        ))
    }

    pub(crate) fn labels(&self) -> Labels {
        match self.never {}
    }

    pub(crate) fn program(&self, _draw: &Draw) -> Box<dyn Program + Send> {
        match self.never {}
    }

    pub(crate) fn mode(&self) -> String {
        match self.never {}
    }

    pub(crate) fn account(&self) -> Map<String, Value> {
        match self.never {}
    }
}
