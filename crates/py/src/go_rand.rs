//! `loadstone._core.GoRand`: the random stream that TSBS's queries are drawn from.

use std::sync::{Mutex, PoisonError};

use loadstone_gen::tsbs::go_rand::GoRand as CoreRand;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Go's `math/rand` after `rand.Seed(seed)`.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct GoRand {
    inner: Mutex<CoreRand>,
}

impl GoRand {
    fn draw<T>(&self, one: impl FnOnce(&mut CoreRand) -> T) -> T {
        one(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The upper bound, which Go panics about when it is not above 0.
fn bound(n: i64) -> PyResult<u64> {
    match u64::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(PyValueError::new_err(format!(
            "the bound of a random number must be above 0, not {n}"
        ))),
    }
}

#[pymethods]
impl GoRand {
    #[new]
    fn new(seed: i64) -> Self {
        Self {
            inner: Mutex::new(CoreRand::new(seed)),
        }
    }

    fn int63(&self) -> i64 {
        self.draw(CoreRand::int63)
    }

    fn int63n(&self, n: i64) -> PyResult<u64> {
        let n = bound(n)?;
        Ok(self.draw(|rand| rand.int63n(n)))
    }

    fn intn(&self, n: i64) -> PyResult<u64> {
        let n = bound(n)?;
        Ok(self.draw(|rand| rand.intn(n)))
    }

    fn float64(&self) -> f64 {
        self.draw(CoreRand::float64)
    }
}
