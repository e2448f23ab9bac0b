//! How much memory this process can take before the system ends it: what the machine has, what its control groups leave
//! (containers, batch systems), and the limits of the process itself.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The system reads files to tell how many cores there are, which takes longer than many a run: what it told is good for so
/// long.
const CORES_KNOWN: Duration = Duration::from_secs(1);

/// Cores that this process may use.
pub fn cores() -> usize {
    static KNOWN: Mutex<Option<(Instant, usize)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match *known {
        Some((since, cores)) if since.elapsed() < CORES_KNOWN => cores,
        _ => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            *known = Some((Instant::now(), cores));
            cores
        }
    }
}

/// Bytes that this process can take, as far as the system tells: the least of what the machine has available without swapping,
/// what every control group that it is in leaves, and what its own limits of address space and data leave.
///
/// It is a look at one moment: other processes, of the machine and of its control groups, may take memory right after it.
pub fn available_memory() -> Option<usize> {
    let bytes = by_files(&|path| std::fs::read_to_string(path).ok())?;
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Bytes of memory of its own, not of files, that this process has written to, as far as the system tells.
pub fn resident_memory() -> Option<usize> {
    written(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The same, by its `/proc/self/status`.
fn written(status: &str) -> Option<usize> {
    usize::try_from(kib(status, "RssAnon:")?).ok()
}

/// The text of a file of the system, if it is there.
type Files<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The same, by the files that a system has.
fn by_files(files: Files<'_>) -> Option<u64> {
    let machine = machine(&files(Path::new("/proc/meminfo"))?)?;
    let limits = own_limits(files);
    Some([groups(files), limits].into_iter().flatten().fold(machine, u64::min))
}

/// What a machine has, by its `/proc/meminfo`.
fn machine(meminfo: &str) -> Option<u64> {
    let field = |name: &str| kib(meminfo, name);
    field("MemAvailable:").or_else(|| Some(field("MemFree:")?.saturating_add(field("Cached:")?)))
}

/// A number of KiB behind a name, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What the limits of the process leave (`ulimit -v`, `ulimit -d`).
fn own_limits(files: Files<'_>) -> Option<u64> {
    let limits = files(Path::new("/proc/self/limits"))?;
    let status = files(Path::new("/proc/self/status"))?;
    let room = |limit: &str, used: &str| {
        // The soft limit comes first; `unlimited` is no number.
        let limit = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        Some(limit.parse::<u64>().ok()?.saturating_sub(kib(&status, used)?))
    };
    [room("Max address space", "VmSize:"), room("Max data size", "VmData:")].into_iter().flatten().min()
}

/// What the control groups of the process leave, all that it is in, of both versions.
fn groups(files: Files<'_>) -> Option<u64> {
    let own = files(Path::new("/proc/self/cgroup"))?;
    let mounts = files(Path::new("/proc/self/mountinfo"))?;
    mounts.lines().filter_map(mount).filter_map(|mount| mount.room(&own, files)).min()
}

/// The files of a hierarchy of control groups.
#[derive(PartialEq, Eq, Debug)]
struct Mount {
    /// The group that is seen at `point`.
    root: PathBuf,
    point: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    /// The memory controller of version 1.
    One,
    Two,
}

/// A line of `/proc/self/mountinfo`, if it mounts control groups of memory:
/// `35 24 0:30 /root /point rw,nosuid - cgroup cgroup rw,memory`.
fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (unescaped(place.next()?), unescaped(place.next()?));
    let mut kind = kind.split(' ');
    let version = match kind.next()? {
        "cgroup2" => Version::Two,
        "cgroup" if kind.nth(1)?.split(',').any(|option| option == "memory") => Version::One,
        _ => return None,
    };
    Some(Mount { root, point, version })
}

/// Spaces and the like stand in a path as three octal digits: `\040`.
fn unescaped(path: &str) -> PathBuf {
    let mut parts = path.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (code, part.get(3..)) {
            (Some(code), Some(rest)) => text.extend([char::from(code).to_string().as_str(), rest]),
            _ => text.extend(["\\", part]),
        }
    }
    text.into()
}

impl Mount {
    /// What the group of the process in this hierarchy, and those that it is in, leave. `own` is `/proc/self/cgroup`.
    fn room(&self, own: &str, files: Files<'_>) -> Option<u64> {
        let group = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?);
            let is = match self.version {
                Version::One => controllers.split(',').any(|c| c == "memory"),
                Version::Two => controllers.is_empty(),
            };
            is.then(|| Path::new(group))
        })?;
        // What lies outside of the mount cannot be seen: a container sees its own group at the root.
        let below = group.strip_prefix(&self.root).ok().filter(|p| !p.starts_with("..")).unwrap_or(Path::new(""));
        let folder = self.point.join(below);
        let groups = folder.ancestors().take_while(|f| f.starts_with(&self.point));
        groups.filter_map(|folder| self.version.room(folder, files)).min()
    }
}

impl Version {
    /// What one group leaves: its limit without what it uses, of which files that nobody reads can be dropped.
    fn room(self, folder: &Path, files: Files<'_>) -> Option<u64> {
        let read = |name: &str| files(&folder.join(name));
        // `max`, for no limit, is no number.
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let stat = read("memory.stat").unwrap_or_default();
        let field = |name: &str| {
            let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            value.trim().parse::<u64>().ok()
        };
        let (limits, used, droppable) = match self {
            Version::One => {
                // The least of this group and those around it, those out of sight included.
                let limits = [number("memory.limit_in_bytes"), field("hierarchical_memory_limit")];
                (limits, number("memory.usage_in_bytes"), field("total_inactive_file"))
            }
            Version::Two => {
                let limits = [number("memory.max"), number("memory.high")];
                (limits, number("memory.current"), field("inactive_file"))
            }
        };
        let limit = limits.into_iter().flatten().min()?;
        Some(limit.saturating_sub(used?.saturating_sub(droppable.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str =
        "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\nCached:  5 kB\n";
    const MACHINE: u64 = 20_000_000 * 1024;
    const MOUNT2: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec - cgroup2 cgroup2 rw,nsdelegate\n";
    const MOUNT1: &str = "36 25 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory\n\
                          37 25 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                          38 25 8:1 /home/a\\040b /mnt/memory rw - ext4 /dev/sda1 rw,memory\n";

    /// What is available on a system with these files.
    fn available(files: &[(&str, &str)]) -> Option<u64> {
        by_files(&|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found
                .map(|(_, text)| (*text).to_owned())
                .or_else(|| (path == Path::new("/proc/meminfo")).then(|| MEMINFO.into()))
        })
    }

    #[test]
    fn without_limits_it_is_what_the_machine_has() {
        assert_eq!(available(&[]), Some(MACHINE));
        assert_eq!(available(&[("/proc/meminfo", "")]), None);
        assert_eq!(available(&[("/proc/meminfo", "MemFree: 30 kB\nCached: 12 kB\n")]), Some(42 * 1024));
        let unlimited = [
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/proc/self/mountinfo", MOUNT2),
            ("/sys/fs/cgroup/user.slice/memory.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/memory.high", "max\n"),
            ("/sys/fs/cgroup/user.slice/memory.current", "123456\n"),
        ];
        assert_eq!(available(&unlimited), Some(MACHINE));
    }

    #[test]
    fn every_group_around_the_process_counts() {
        let files = |outer: &'static str, high: &'static str| {
            vec![
                ("/proc/self/cgroup", "0::/slurm/job 1/step\n"),
                ("/proc/self/mountinfo", MOUNT2),
                ("/sys/fs/cgroup/slurm/memory.max", outer),
                ("/sys/fs/cgroup/slurm/memory.current", "1000000000\n"),
                ("/sys/fs/cgroup/slurm/memory.stat", "anon 3\nactive_file 4\ninactive_file 200000000\n"),
                ("/sys/fs/cgroup/slurm/job 1/memory.max", "2000000000\n"),
                ("/sys/fs/cgroup/slurm/job 1/memory.high", high),
                ("/sys/fs/cgroup/slurm/job 1/memory.current", "500000000\n"),
                ("/sys/fs/cgroup/slurm/job 1/step/memory.max", "max\n"),
            ]
        };
        assert_eq!(available(&files("max\n", "max\n")), Some(1_500_000_000));
        assert_eq!(available(&files("max\n", "900000000\n")), Some(400_000_000));
        // 1 GB used, of which 0.2 GB are files that can be dropped.
        assert_eq!(available(&files("1900000000\n", "max\n")), Some(1_100_000_000));
        assert_eq!(available(&files("700000000\n", "max\n")), Some(0), "a group beyond its limit has nothing left");
    }

    #[test]
    fn a_container_sees_its_group_at_the_root() {
        let root = [("/sys/fs/cgroup/memory.max", "1000\n"), ("/sys/fs/cgroup/memory.current", "300\n")];
        let of = |own: &'static str, mount: &'static str| {
            let system = [("/proc/self/cgroup", own), ("/proc/self/mountinfo", mount)];
            available(&[&system[..], &root].concat())
        };
        let bound = "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(of("0::/\n", MOUNT2), Some(700));
        assert_eq!(of("0::/docker/abc\n", bound), Some(700));
        assert_eq!(of("0::/../other\n", MOUNT2), Some(700));
        assert_eq!(of("0::/elsewhere\n", bound), Some(700));
    }

    #[test]
    fn version_one_is_read_and_so_are_both_at_once() {
        let folder = |limit: &'static str| {
            vec![
                ("/proc/self/cgroup", "12:cpu,cpuacct:/\n9:hugetlb,memory:/batch\n0::/unified\n"),
                ("/proc/self/mountinfo", MOUNT1),
                ("/sys/fs/cgroup/memory/batch/memory.limit_in_bytes", limit),
                ("/sys/fs/cgroup/memory/batch/memory.usage_in_bytes", "4000000\n"),
                (
                    "/sys/fs/cgroup/memory/batch/memory.stat",
                    "inactive_file 7\nhierarchical_memory_limit 9000000\ntotal_inactive_file 1000000\n",
                ),
            ]
        };
        assert_eq!(available(&folder("8000000\n")), Some(5_000_000));
        assert_eq!(available(&folder("9223372036854771712\n")), Some(6_000_000), "a group out of sight has a limit");
        let both = format!("{MOUNT1}40 25 0:40 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        let mut hybrid = folder("8000000\n");
        hybrid[1].1 = &both;
        hybrid.push(("/sys/fs/cgroup/unified/unified/memory.max", "2000000"));
        hybrid.push(("/sys/fs/cgroup/unified/unified/memory.current", "500000"));
        assert_eq!(available(&hybrid), Some(1_500_000));
    }

    #[test]
    fn the_limits_of_the_process_count() {
        let of = |limits: &'static str| {
            let status = "Name:\tautobatch\nVmSize:\t  100000 kB\nVmData:\t   2000 kB\n";
            available(&[("/proc/self/limits", limits), ("/proc/self/status", status)])
        };
        assert_eq!(
            of("Max address space         unlimited            unlimited            bytes     \n"),
            Some(MACHINE)
        );
        assert_eq!(
            of("Max address space         202400000            unlimited            bytes\n"),
            Some(100_000_000)
        );
        assert_eq!(
            of(
                "Max data size             3048000            unlimited  bytes\nMax address space 202400000 unlimited bytes\n"
            ),
            Some(1_000_000)
        );
    }

    #[test]
    fn what_is_written_to_is_read() {
        assert_eq!(written("VmRSS:\t  30 kB\nRssAnon:\t      12 kB\nRssFile:\t  18 kB\n"), Some(12 * 1024));
        assert_eq!(written("VmRSS:\t  30 kB\n"), None);
    }

    #[test]
    fn paths_are_read_as_they_are_written_there() {
        assert_eq!(unescaped("/a\\040b\\134c"), PathBuf::from("/a b\\c"));
        assert_eq!(unescaped("/a\\9"), PathBuf::from("/a\\9"));
        assert_eq!(mount("1 2 0:3 / /x rw - tmpfs tmpfs rw"), None);
        assert_eq!(mount("broken"), None);
    }
}
