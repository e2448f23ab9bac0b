//! The machine, and what else it does while figures are measured.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Share of all cores that others may use before a figure is void.
const FOREIGN_LIMIT: f64 = 0.05;
/// Ticks of the counters in `/proc` a second: fixed in the interface of Linux.
const TICKS: f64 = 100.0;

/// What figures were measured on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    pub vectors: String,
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
            vectors: vectors().to_owned(),
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
    cores: usize,
    before: Option<Times>,
}

/// Seconds of processor time.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Of all processes, and stolen by other guests of the host.
    all: f64,
    /// Of this process and all that it has started.
    own: f64,
}

/// What others did while a series, or what it runs in turns with, was measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForeignLoad {
    /// Cores that others used on average.
    pub cores: f64,
    /// Whether that was so much in a repetition that the figures are void.
    pub void: bool,
}

impl LoadMeter {
    /// Begins to measure, on a machine with so many cores.
    pub fn start(cores: usize) -> Self {
        Self { start: Instant::now(), cores, before: Times::read() }
    }

    /// Since the start. `None` where the system does not tell.
    pub fn foreign(&self) -> Option<ForeignLoad> {
        let (before, after) = (self.before?, Times::read()?);
        let others = (after.all - before.all) - (after.own - before.own);
        Some(ForeignLoad::of(others, self.start.elapsed().as_secs_f64(), self.cores as f64))
    }
}

impl ForeignLoad {
    /// Of so many seconds of processor time that others took within some seconds, on a machine with so many cores.
    fn of(others: f64, seconds: f64, cores: f64) -> Self {
        // Counters are in hundredths of a second: a short time may come out below 0, or two of them too high on each core.
        let unsure = 2.0 * cores / TICKS;
        let others = others.max(0.0);
        Self { cores: others / seconds.max(0.01), void: others - unsure > FOREIGN_LIMIT * cores * seconds }
    }

    /// Of several repetitions: the mean, and void if one of them is.
    pub fn over(repetitions: &[Self]) -> Option<Self> {
        let cores = repetitions.iter().map(|r| r.cores).sum::<f64>() / repetitions.len() as f64;
        (!repetitions.is_empty()).then(|| Self { cores, void: repetitions.iter().any(|r| r.void) })
    }
}

impl Times {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let all = all_ticks(&stat)?;
        let stats: Vec<ProcessTicks> = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                path.file_name()?.to_str()?.parse::<u32>().ok()?;
                // One that ends meanwhile has gone.
                ProcessTicks::of(&fs::read_to_string(path.join("stat")).ok()?)
            })
            .collect();
        Some(Self { all: all / TICKS, own: own_ticks(std::process::id(), &stats) / TICKS })
    }
}

/// The time of a process and of those children that it has waited for.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ProcessTicks {
    process: u32,
    parent: u32,
    ticks: f64,
}

impl ProcessTicks {
    /// Of the line in `/proc/PROCESS/stat`: the fields 4 and 14 to 17 stand behind the name, which may hold anything but the last
    /// parenthesis.
    fn of(stat: &str) -> Option<Self> {
        let (process, rest) = stat.split_once(' ')?;
        let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = (11..15).map(|i| fields.get(i).and_then(|n| n.parse::<f64>().ok())).sum::<Option<f64>>()?;
        Some(Self { process: process.parse().ok()?, parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// The time of a process and of all below it, whether it has waited for them or not.
fn own_ticks(process: u32, all: &[ProcessTicks]) -> f64 {
    let mut family = vec![process];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let children = all.iter().filter(|p| p.parent == parent && !family.contains(&p.process));
        let children: Vec<u32> = children.map(|p| p.process).collect();
        family.extend(children);
        next += 1;
    }
    all.iter().filter(|p| family.contains(&p.process)).map(|p| p.ticks).sum()
}

/// Words of a mask of cores: 1024 of them, as many as the C library of Linux knows.
#[cfg(target_os = "linux")]
type CoreMask = [u64; 16];

/// Keeps this thread, and the threads and processes that it starts, to some cores until it is dropped.
#[derive(Debug)]
pub struct UsedCores {
    #[cfg(target_os = "linux")]
    before: Option<CoreMask>,
}

/// Keeps this thread, and the threads and processes that it starts, to the first so many cores of those that it may use: our engines
/// and the peers, which choose their numbers of threads by it, alike. Does nothing where the system cannot.
#[cfg(target_os = "linux")]
pub fn use_cores(cores: usize) -> UsedCores {
    let before = affinity::get();
    if let Some(mask) = before {
        affinity::set(&first_cores(mask, cores));
    }
    UsedCores { before }
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn use_cores(_: usize) -> UsedCores {
    UsedCores {}
}

#[cfg(target_os = "linux")]
impl Drop for UsedCores {
    fn drop(&mut self) {
        if let Some(mask) = &self.before {
            affinity::set(mask);
        }
    }
}

/// The first so many cores of a mask.
#[cfg(target_os = "linux")]
fn first_cores(mask: CoreMask, cores: usize) -> CoreMask {
    let mut left = cores;
    mask.map(|word| {
        let mut kept = 0;
        let mut rest = word;
        while rest != 0 && left > 0 {
            let lowest = rest & rest.wrapping_neg();
            kept |= lowest;
            rest ^= lowest;
            left -= 1;
        }
        kept
    })
}

/// The two functions of the C library about the cores of a thread.
#[cfg(target_os = "linux")]
mod affinity {
    use std::ffi::c_int;

    use super::CoreMask;

    unsafe extern "C" {
        fn sched_getaffinity(process: c_int, bytes: usize, mask: *mut u64) -> c_int;
        fn sched_setaffinity(process: c_int, bytes: usize, mask: *const u64) -> c_int;
    }

    /// The cores of this thread.
    pub(super) fn get() -> Option<CoreMask> {
        let mut mask = CoreMask::default();
        // SAFETY: 0 is the calling thread; the function writes at most as many bytes as it is told, which are those of the mask.
        let failed = unsafe { sched_getaffinity(0, size_of::<CoreMask>(), mask.as_mut_ptr()) };
        (failed == 0).then_some(mask)
    }

    /// Sets the cores of this thread. Where it fails, they stay.
    pub(super) fn set(mask: &CoreMask) {
        // SAFETY: 0 is the calling thread; the function reads as many bytes as it is told, which are those of the mask.
        unsafe { sched_setaffinity(0, size_of::<CoreMask>(), mask.as_ptr()) };
    }
}

/// Of the line `cpu user nice system idle iowait irq softirq steal …`.
fn all_ticks(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<f64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6, 7].map(|i| fields.get(i).copied());
    busy.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_read() {
        let stat = "cpu  100 10 20 1000 5 1 2 7 0 0\ncpu0 1 2 3\n";
        assert_eq!(all_ticks(stat), Some(140.0));
        let own = "42 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        let wanted = ProcessTicks { process: 42, parent: 1, ticks: 11.0 + 12.0 + 13.0 + 14.0 };
        assert_eq!(ProcessTicks::of(own), Some(wanted));
        assert_eq!(ProcessTicks::of("42 (a) S 1"), None);
    }

    #[test]
    fn what_a_process_has_started_is_its_own() {
        let ticks = |process, parent, ticks| ProcessTicks { process, parent, ticks };
        let all = [ticks(1, 0, 100.0), ticks(9, 1, 5.0), ticks(7, 9, 20.0), ticks(8, 7, 3.0), ticks(10, 1, 50.0)];
        assert_eq!(own_ticks(9, &all), 28.0);
        assert_eq!(own_ticks(8, &all), 3.0);
    }

    #[test]
    fn a_repetition_with_other_load_is_void() {
        assert!(ForeignLoad::of(0.3, 2.0, 2.0).void);
        assert!(!ForeignLoad::of(0.2, 2.0, 2.0).void);
        assert!(!ForeignLoad::of(0.03, 0.1, 2.0).void, "as much as the counters may be wrong");
        assert_eq!(ForeignLoad::of(-0.01, 1.0, 2.0).cores, 0.0);
        let of = |cores, void| ForeignLoad { cores, void };
        assert_eq!(ForeignLoad::over(&[of(0.0, false), of(1.0, true)]), Some(of(0.5, true)));
        assert_eq!(ForeignLoad::over(&[]), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn some_cores_are_used_and_then_all_again() {
        let mut mask = CoreMask::default();
        (mask[0], mask[2]) = (0b1011 << 60, 0b11);
        let mut wanted = CoreMask::default();
        (wanted[0], wanted[2]) = (0b1011 << 60, 0b1);
        assert_eq!(first_cores(mask, 4), wanted);
        assert_eq!(first_cores(mask, 100), mask);
        let before = affinity::get();
        let used = use_cores(1);
        if let Some(mask) = affinity::get() {
            assert_eq!(mask.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
        }
        drop(used);
        assert_eq!(affinity::get(), before);
    }
}
