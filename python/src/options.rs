//! Options of a run, as keyword arguments of Python.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use autobatch::program::{Codegen, Printed, Prints, device};
use autobatch::{Engine, Options, Precision, Settings};
use pyo3::prelude::*;

/// What runs are asked for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    seed: u64,
    threads: usize,
    first_lane: u64,
    engine: String,
    codegen: String,
    real: String,
    device: String,
    memory_limit: Option<u64>,
    device_memory: Option<u64>,
}

/// A line that a model prints, as the command tells it.
fn said(line: Printed) {
    eprintln!("[{}] {}", line.who, line.line);
}

impl Asked {
    /// All of it for which programs are compiled anew.
    pub(crate) fn compiled_for(&self) -> [String; 4] {
        [&self.engine, &self.codegen, &self.real, &self.device].map(Clone::clone)
    }

    /// The options, and the flag that ends a run.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<(Options, Arc<AtomicBool>)> {
        let refused = |name: &str, given: &str, there: &str| {
            Err(crate::errors::refused(py, format!("{name}={given:?}: there is {there}")))
        };
        let engine = match self.engine.as_str() {
            "pc" => Engine::Pc,
            "local" => Engine::Local,
            "scalar" => Engine::Scalar,
            given => return refused("engine", given, "'pc', 'local' and 'scalar'"),
        };
        let codegen = match self.codegen.as_str() {
            "auto" => Codegen::Auto,
            "cc" => Codegen::Cc,
            "off" => Codegen::Off,
            given => return refused("codegen", given, "'auto', 'cc' and 'off'"),
        };
        let precision = match self.real.as_str() {
            "f64" => Precision::F64,
            "f32" => Precision::F32,
            given => return refused("real", given, "'f64' and 'f32'"),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let settings = Settings::default().seed(self.seed).threads(self.threads).precision(precision);
        let mut options = Options::default()
            .settings(settings.stop(Arc::clone(&stop)))
            .engine(engine)
            .codegen(codegen)
            .first_lane(self.first_lane)
            .prints(Prints::to(said));
        if let Some(bytes) = self.memory_limit {
            options = options.memory_limit(bytes);
        }
        if let Some(bytes) = self.device_memory {
            options = options.device_memory(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        if self.device != "cpu" {
            options = options.backend(device(&self.device).map_err(|e| crate::errors::raised(py, &e))?);
        }
        Ok((options, stop))
    }
}
