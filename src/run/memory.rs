//! The memory of a run: what grows while lanes run takes from one budget, so that it ends in traps and not in a killed process.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that may be taken between two looks at what is really there: reading it costs a hundredth of writing to them.
pub const BETWEEN_LOOKS: usize = 32 << 20;
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
    watch: Option<Watch>,
}

/// Tells what can be taken on top of what is.
type Available = dyn Fn() -> Option<usize> + Send + Sync + UnwindSafe + RefUnwindSafe;

/// Looks at what the system really has, again and again: other processes take memory, too.
struct Watch {
    available: Box<Available>,
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
    /// No more than `available` says, which is asked again and again while the run goes on. It tells the bytes that could be
    /// taken on top of what is, or nothing where it does not know.
    pub fn watched(available: impl Fn() -> Option<usize> + Send + Sync + UnwindSafe + RefUnwindSafe + 'static) -> Self {
        let watch = Watch {
            available: Box::new(available),
            ceiling: AtomicUsize::new(usize::MAX),
            next: AtomicUsize::new(BETWEEN_LOOKS),
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
            self.give_back(bytes);
            return Err(NoMemory);
        }
        self.peak.fetch_max(after, Ordering::Relaxed);
        Ok(())
    }
    /// Gives memory back that was taken.
    pub fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
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
        self.next.store(after.saturating_add(BETWEEN_LOOKS), Ordering::Relaxed);
        let Some(available) = (self.available)() else { return true };
        *last = Some(Instant::now());
        // What was taken before is no longer available: it is written to as soon as it is taken.
        let ceiling = before.saturating_add(available);
        self.ceiling.store(ceiling, Ordering::Relaxed);
        after <= ceiling
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, taken, peak, watch } = self;
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

    #[test]
    fn what_the_system_has_no_longer_is_not_taken() {
        const MIB: usize = 1 << 20;
        let free = Arc::new(AtomicUsize::new(1000 * MIB));
        let looks = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&free), Arc::clone(&looks));
        let budget = MemoryBudget::watched(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Some(seen.load(Ordering::Relaxed))
        });
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
        assert_eq!(MemoryBudget::watched(|| None).take(1999 * MIB), Ok(()));
    }
}
