//! What a device that is not the processor did in a run.

use std::fmt;

/// What a device did in a run.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct DeviceStats {
    /// Its name.
    pub name: String,
    /// Lanes that it ran at a time.
    pub threads: usize,
    /// How often the program was started on it: lanes that wait for room for their records, or on a stack, make it stop.
    pub launches: u64,
    /// Seconds that it worked.
    pub busy: f64,
    /// Bytes of records that were copied from it.
    pub records: u64,
}

impl DeviceStats {
    pub(crate) fn new(name: String, threads: usize) -> Self {
        Self { name, threads, launches: 0, busy: 0.0, records: 0 }
    }
}

impl fmt::Display for DeviceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, threads, launches, busy, records } = self;
        let (lanes, s) = (if *threads == 1 { "lane" } else { "lanes" }, if *launches == 1 { "" } else { "es" });
        write!(
            f,
            "{name}: {threads} {lanes} at a time, {launches} launch{s}, busy for {busy:.6} s, {records} bytes of records"
        )
    }
}
