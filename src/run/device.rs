//! What a device that is not the processor did in a run.

use std::fmt;

use indexmap::IndexMap;

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

    /// Adds what the device did with other lanes, or in another run.
    pub(crate) fn add(&mut self, other: DeviceStats) {
        self.threads = self.threads.max(other.threads);
        self.launches += other.launches;
        self.busy += other.busy;
        self.records += other.records;
    }

    /// What one device did in several runs.
    pub(crate) fn of_runs(runs: impl Iterator<Item = DeviceStats>) -> Option<DeviceStats> {
        runs.reduce(|mut all, run| {
            all.add(run);
            all
        })
    }

    /// What several devices did beside one another, as one: their seconds are added up.
    pub(crate) fn of_all(devices: Vec<DeviceStats>) -> Option<DeviceStats> {
        let mut names: IndexMap<String, usize> = IndexMap::new();
        devices.iter().for_each(|device| *names.entry(device.name.clone()).or_insert(0) += 1);
        let named = |(name, count): (&String, &usize)| match count {
            1 => name.clone(),
            _ => format!("{count} × {name}"),
        };
        let name = names.iter().map(named).collect::<Vec<_>>().join(", ");
        let threads = devices.iter().map(|device| device.threads).sum();
        let mut all = Self::of_runs(devices.into_iter())?;
        (all.name, all.threads) = (name, threads);
        Some(all)
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
