//! The memory of a run: what grows while lanes run takes from one budget, so that it ends in traps and not in a killed
//! process. `src/run/README.md` says what is counted and where the limit comes from.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may be taken between two looks at what is really there: reading it costs a hundredth of writing to them.
pub const BETWEEN_LOOKS: usize = 32 << 20;
/// The same where little is left, and before the first look: many a run ends before that, and would take less time than it.
const OFTEN: usize = 1 << 20;
/// Where there was too little, it is not looked again for so long.
const PATIENCE: Duration = Duration::from_millis(20);

/// There is no memory for what was asked: none that is free, or none within the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// What a run may take beyond what was known before it started. All its shards take from it, and give back.
#[derive(Default)]
pub struct MemoryBudget {
    limit: Option<usize>,
    taken: AtomicUsize,
    peak: AtomicUsize,
    /// What was given back since the allocator was last told to keep none of it.
    freed: AtomicUsize,
    watch: Option<Watch>,
}

/// What the system says, asked while a run goes on.
pub trait System: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// Bytes that could be taken on top of what is, or nothing where it does not know.
    fn available(&self) -> Option<usize>;
    /// Bytes of memory of its own that the process has written to, or nothing where it does not know.
    fn resident(&self) -> Option<usize>;
}

/// Looks at what the system really has, again and again: other processes take memory, too.
struct Watch {
    system: Box<dyn System>,
    /// What the process had written to before anything was taken, as of the first look.
    resident_before: OnceLock<Option<usize>>,
    /// What may be taken by the last look.
    ceiling: AtomicUsize,
    /// Where so much is taken, it is looked again.
    next: AtomicUsize,
    last: Mutex<Option<Instant>>,
}

impl MemoryBudget {
    /// A budget without a limit, which counts.
    pub fn unlimited() -> Self {
        Self::default()
    }
    /// So many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }
    /// No more than the system has, which is asked again and again while the run goes on.
    pub fn watched(system: impl System + 'static) -> Self {
        let watch = Watch {
            resident_before: OnceLock::new(),
            system: Box::new(system),
            ceiling: AtomicUsize::new(usize::MAX),
            next: AtomicUsize::new(OFTEN),
            last: Mutex::default(),
        };
        Self { watch: Some(watch), ..Self::default() }
    }
    /// Takes memory.
    ///
    /// # Errors
    /// Where so much is not left; nothing is taken then.
    pub fn take(&self, bytes: usize) -> Result<(), NoMemory> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let add = |taken: usize| taken.checked_add(bytes).filter(|after| *after <= limit);
        let before = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map_err(|_| NoMemory)?;
        let after = before + bytes;
        if self.watch.as_ref().is_some_and(|watch| !watch.allows(before, after)) {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
            return Err(NoMemory);
        }
        self.peak.fetch_max(after, Ordering::Relaxed);
        Ok(())
    }
    /// Takes memory for what can be done without, where it is no more than a quarter of what is left.
    ///
    /// # Errors
    /// Where it is more; nothing is taken then.
    pub fn take_of_plenty(&self, bytes: usize) -> Result<(), NoMemory> {
        let before = self.taken();
        let after = bytes.checked_mul(4).and_then(|most| before.checked_add(most)).ok_or(NoMemory)?;
        let fits = after <= self.limit.unwrap_or(usize::MAX);
        if !fits || self.watch.as_ref().is_some_and(|watch| !watch.allows(before, after)) {
            return Err(NoMemory);
        }
        self.take(bytes)
    }
    /// Gives memory back that was taken, and is free.
    pub fn give_back(&self, bytes: usize) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        let ceiling = self.watch.as_ref().map_or(usize::MAX, |watch| watch.ceiling.load(Ordering::Relaxed));
        let most = self.limit.unwrap_or(usize::MAX).min(ceiling);
        // The allocator keeps what a thread frees for that thread. Where there is not plenty, another one may want it.
        if before > most / 2 {
            let freed = self.freed.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
            if freed > (most / 64).min(BETWEEN_LOOKS) {
                self.freed.store(0, Ordering::Relaxed);
                release();
            }
        }
    }
    /// Bytes that are taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
    /// The most that was taken at one time.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

/// Lets the system have what is free.
fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: a function of the C library that this program is linked to, of this type by its manual; it may be
        // called by any thread at any time, and touches only memory that nobody has.
        unsafe { malloc_trim(0) };
    }
}

impl Watch {
    /// Whether the system has what is taken when `before` grows to `after`.
    fn allows(&self, before: usize, after: usize) -> bool {
        let known = || {
            let (ceiling, next) = (self.ceiling.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed));
            (after <= ceiling && after <= next).then_some(true)
        };
        if known() == Some(true) {
            return true;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have looked meanwhile.
        if known() == Some(true) {
            return true;
        }
        let ceiling = self.ceiling.load(Ordering::Relaxed);
        if after > ceiling && last.is_some_and(|last| last.elapsed() < PATIENCE) {
            return false;
        }
        // What is taken but not yet written to, by another thread say, is still available. Asked for in this order,
        // what is written meanwhile counts for less, and not for more.
        let resident = self.system.resident();
        // What little was taken before the first look is taken to be written.
        let resident_before = *self.resident_before.get_or_init(|| Some(resident?.saturating_sub(before)));
        let Some(available) = self.system.available() else {
            self.next.store(after.saturating_add(BETWEEN_LOOKS), Ordering::Relaxed);
            return true;
        };
        *last = Some(Instant::now());
        let written = resident.zip(resident_before).map(|(now, then)| now.saturating_sub(then));
        let ceiling = written.map_or(before, |written| written.min(before)).saturating_add(available);
        self.ceiling.store(ceiling, Ordering::Relaxed);
        // There are things that nobody counts: where little is left it is looked more often.
        let until = (ceiling.saturating_sub(after) / 2).clamp(OFTEN, BETWEEN_LOOKS);
        self.next.store(after.saturating_add(until), Ordering::Relaxed);
        after <= ceiling
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, taken, peak, freed: _, watch } = self;
        let watched = watch.is_some();
        write!(f, "MemoryBudget {{ limit: {limit:?}, taken: {taken:?}, peak: {peak:?}, watched: {watched} }}")
    }
}

/// Memory that was taken from a budget; it is given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    /// Nothing yet.
    pub fn of(budget: &Arc<MemoryBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Makes it so large.
    ///
    /// # Errors
    /// Where the budget has not so much left; it stays as it was.
    pub fn resize(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes)?;
        } else {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_not_passed_and_what_is_given_back_can_be_taken_again() {
        let budget = Arc::new(MemoryBudget::new(100));
        let mut one = Reservation::of(&budget);
        let mut other = Reservation::of(&budget);
        assert_eq!((one.resize(60), other.resize(50)), (Ok(()), Err(NoMemory)));
        assert_eq!((other.resize(40), one.resize(61)), (Ok(()), Err(NoMemory)));
        assert_eq!((one.bytes(), other.bytes(), budget.taken()), (60, 40, 100));
        drop(one);
        assert_eq!((other.resize(70), other.resize(10)), (Ok(()), Ok(())));
        assert_eq!((budget.taken(), budget.peak()), (10, 100));
        assert_eq!(budget.take(usize::MAX), Err(NoMemory));
        drop(other);
        assert_eq!(budget.taken(), 0);
        assert_eq!(MemoryBudget::unlimited().take(usize::MAX), Ok(()));
    }

    #[test]
    fn of_what_is_left_a_quarter_is_plenty_and_no_more_than_that_is_counted() {
        let budget = MemoryBudget::new(100);
        assert_eq!((budget.take(20), budget.take_of_plenty(21)), (Ok(()), Err(NoMemory)));
        assert_eq!((budget.take_of_plenty(20), budget.take_of_plenty(usize::MAX)), (Ok(()), Err(NoMemory)));
        assert_eq!((budget.taken(), budget.peak()), (40, 40));
    }

    #[test]
    fn many_threads_never_take_more_than_there_is() {
        let budget = MemoryBudget::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        if budget.take(300).is_ok() {
                            budget.give_back(300);
                        }
                    }
                });
            }
        });
        assert!(budget.taken() == 0 && budget.peak() <= 900, "{budget:?}");
    }

    /// A system that says what it is told.
    struct Told {
        free: Arc<AtomicUsize>,
        looks: Arc<AtomicUsize>,
        resident: Option<Arc<AtomicUsize>>,
    }

    impl System for Told {
        fn available(&self) -> Option<usize> {
            self.looks.fetch_add(1, Ordering::Relaxed);
            Some(self.free.load(Ordering::Relaxed))
        }
        fn resident(&self) -> Option<usize> {
            Some(self.resident.as_ref()?.load(Ordering::Relaxed))
        }
    }

    struct Silent;

    impl System for Silent {
        fn available(&self) -> Option<usize> {
            None
        }
        fn resident(&self) -> Option<usize> {
            None
        }
    }

    #[test]
    fn what_the_system_has_no_longer_is_not_taken() {
        const MIB: usize = 1 << 20;
        let free = Arc::new(AtomicUsize::new(1000 * MIB));
        let looks = Arc::new(AtomicUsize::new(0));
        let system = Told { free: Arc::clone(&free), looks: Arc::clone(&looks), resident: None };
        let budget = MemoryBudget::watched(system);
        // Small steps: a look at every 32 MiB.
        for _ in 0..100 {
            assert_eq!(budget.take(MIB), Ok(()));
            free.fetch_sub(MIB, Ordering::Relaxed);
        }
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        // Another process takes nearly all.
        free.store(40 * MIB, Ordering::Relaxed);
        assert_eq!((budget.take(50 * MIB), budget.take(39 * MIB)), (Err(NoMemory), Ok(())));
        assert_eq!((budget.taken(), looks.load(Ordering::Relaxed)), (139 * MIB, 4));
        free.store(MIB, Ordering::Relaxed);
        assert_eq!(budget.take(2 * MIB), Err(NoMemory));
        assert!(looks.load(Ordering::Relaxed) <= 5, "it is not looked again and again");
        std::thread::sleep(PATIENCE);
        free.store(500 * MIB, Ordering::Relaxed);
        assert_eq!(budget.take(400 * MIB), Ok(()));
        assert_eq!(MemoryBudget::watched(Silent).take(1999 * MIB), Ok(()));
    }

    #[test]
    fn what_is_taken_and_not_yet_written_to_is_not_given_twice() {
        const MIB: usize = 1 << 20;
        let free = Arc::new(AtomicUsize::new(100 * MIB));
        let resident = Arc::new(AtomicUsize::new(7 * MIB));
        let system = Told { free: Arc::clone(&free), looks: Arc::default(), resident: Some(Arc::clone(&resident)) };
        let budget = MemoryBudget::watched(system);
        // Another thread has it, and has written to a third.
        assert_eq!(budget.take(60 * MIB), Ok(()));
        free.fetch_sub(20 * MIB, Ordering::Relaxed);
        resident.fetch_add(20 * MIB, Ordering::Relaxed);
        assert_eq!((budget.take(50 * MIB), budget.take(40 * MIB)), (Err(NoMemory), Ok(())));
    }
}
