//! The machine, and what else it does while figures are measured.

use std::fs;
use std::time::Instant;

use serde::Serialize;

/// Share of all cores that others may use before a figure is void.
const FOREIGN_LIMIT: f64 = 0.05;
/// Ticks of the counters in `/proc` a second: fixed in the interface of Linux.
const TICKS: f64 = 100.0;

/// What figures were measured on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// The processor as it calls itself.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Operating system and its version.
    pub os: String,
    /// Widest vector instructions: `AVX-512`, `AVX2`, or the base of the processor's family.
    pub vectors: &'static str,
    /// Load averages over 1, 5 and 15 minutes before the first measurement.
    pub load_average: Option<[f64; 3]>,
}

impl Machine {
    /// Of this machine. What the system does not tell is empty or 0.
    pub fn read() -> Self {
        let field = |file: &str, key: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|l| l.starts_with(key)).unwrap_or_default();
            line.split_once(':').map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal");
        let kib = memory.trim_end_matches("kB").trim().parse::<f64>().unwrap_or(0.0);
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (kib / f64::from(1 << 20) * 10.0).round() / 10.0,
            os: format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned(),
            vectors: vectors(),
            load_average: load_average(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn vectors() -> &'static str {
    if is_x86_feature_detected!("avx512f") {
        "AVX-512"
    } else if is_x86_feature_detected!("avx2") {
        "AVX2"
    } else {
        "SSE2"
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn vectors() -> &'static str {
    std::env::consts::ARCH
}

/// Load averages, where the system tells them.
pub fn load_average() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split(' ').map_while(|n| n.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// Measures how many cores other processes, and other guests of the host, use from its making on.
#[derive(Debug)]
pub struct LoadMeter {
    start: Instant,
    before: Option<Times>,
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Of all processes, and stolen by other guests of the host.
    all: f64,
    /// Of this process and the children that it has waited for.
    own: f64,
}

/// What others did.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ForeignLoad {
    /// Cores that others used on average.
    pub cores: f64,
    /// Whether that is so much that the figures are void.
    pub void: bool,
}

impl LoadMeter {
    /// Begins to measure.
    pub fn start() -> Self {
        Self { start: Instant::now(), before: Times::read() }
    }

    /// Since the start; children must have been waited for. `None` where the system does not tell.
    pub fn foreign(&self) -> Option<ForeignLoad> {
        let (before, after) = (self.before?, Times::read()?);
        let seconds = self.start.elapsed().as_secs_f64();
        let others = (after.all - before.all) - (after.own - before.own);
        // Counters are in hundredths of a second, so that a short time may come out below 0.
        let cores = (others / seconds.max(0.01)).max(0.0);
        let all = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        Some(ForeignLoad { cores, void: cores / all > FOREIGN_LIMIT })
    }
}

impl Times {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let all = all_ticks(&stat)?;
        let own = own_ticks(&fs::read_to_string("/proc/self/stat").ok()?)?;
        Some(Self { all: all / TICKS, own: own / TICKS })
    }
}

/// Of the line `cpu user nice system idle iowait irq softirq steal …`.
fn all_ticks(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<f64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6, 7].map(|i| fields.get(i).copied());
    busy.into_iter().sum()
}

/// Of the fields 14 to 17 behind the name, which may hold anything but the last parenthesis.
fn own_ticks(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    (11..15).map(|i| fields.get(i).and_then(|n| n.parse::<f64>().ok())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_read() {
        let stat = "cpu  100 10 20 1000 5 1 2 7 0 0\ncpu0 1 2 3\n";
        assert_eq!(all_ticks(stat), Some(140.0));
        let own = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        assert_eq!(own_ticks(own), Some(11.0 + 12.0 + 13.0 + 14.0));
        assert_eq!(own_ticks("42 (a) S 1"), None);
    }
}
