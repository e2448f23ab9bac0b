//! Which form of code takes the next lanes of a run (`--codegen auto`): groups of lanes, or straight code for one lane
//! after the other.
//!
//! Which one does more depends on the program and its data. Arithmetic on reals that all lanes do alike is several times
//! as fast in groups; where lanes go ways of their own, and read and write elements at indices of their own, straight
//! code is. So both are measured, in seconds of a thread for a lane that comes to its end, and whoever is faster takes
//! the lanes that no shard has taken.
//!
//! **What a try costs.** A shard of groups that takes no more lanes brings those that it has to their end, with ever
//! fewer at a time: that is taken to cost as much as a whole shard. Then comes a lane of straight code, which is taken
//! to be slower by no more than the lanes of a vector. A try begins when all that is a small part of what the runs of the
//! program have taken, on one thread. So a run of few long lanes, such as chains, knows nothing of it. The compiler of
//! straight code starts later than that of groups, which is likely to be what serves.
//!
//! **Verdicts.** A form must be faster by a margin to take over. Whoever lost is tried again when the runs have taken
//! twice as long, since the machine may have been busy, and the next lanes may be others. Both times are kept on disk
//! beside the code of groups, and the next process begins with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::beside::lock;
use super::lookout::LOOKS;
use super::{Beside, Native};
use crate::backend::{Form, Units};
use crate::types::Precision;

/// A lane of straight code is taken to need no more than so many times what one needs in groups.
const SLOWER: f64 = 8.0;
/// What a try may cost, in parts of the time that runs have taken.
const WORTH: f64 = 0.03;
/// How many times as fast a form must be to take over.
const MARGIN: f64 = 1.1;
/// A measurement of less time than this says little.
const ENOUGH: Duration = Duration::from_millis(2);
/// Of what was measured before the last so much, half is forgotten.
const MEMORY: Duration = Duration::from_millis(500);
/// How much later the compiler of straight code starts than that of groups does.
const LATER: f64 = 4.0;

/// Both forms of code of a program, and what they do.
#[derive(Debug)]
pub struct Choice {
    groups: Beside,
    one_lane: Beside,
    verdict: Mutex<Verdict>,
}

/// Who takes lanes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Side {
    #[default]
    Groups,
    Straight,
}

/// What lanes took that came to their end.
#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    lanes: f64,
    seconds: f64,
}

impl Pace {
    /// What was measured before, which counts little.
    fn recalled(seconds: f64) -> Self {
        let lanes = 2.0 * ENOUGH.as_secs_f64() / seconds;
        Self { lanes, seconds: lanes * seconds }
    }
    fn add(&mut self, lanes: usize, time: Duration) {
        if self.seconds > MEMORY.as_secs_f64() {
            (self.lanes, self.seconds) = (0.5 * self.lanes, 0.5 * self.seconds);
        }
        (self.lanes, self.seconds) = (self.lanes + lanes as f64, self.seconds + time.as_secs_f64());
    }
    /// Seconds of a thread for a lane, where enough of them were measured.
    fn of_lane(self) -> Option<f64> {
        (self.lanes > 0.0 && self.seconds >= ENOUGH.as_secs_f64()).then(|| self.seconds / self.lanes)
    }
}

/// A try of the form that is not chosen.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Try {
    #[default]
    None,
    /// The next shard that begins makes it.
    Due,
    /// A shard makes it.
    Made,
}

/// What is known of both forms.
#[derive(Clone, Copy, Default, Debug)]
struct Verdict {
    side: Side,
    /// Of groups without their code, of groups with it, and of straight code.
    by_steps: Pace,
    in_groups: Pace,
    straight: Pace,
    attempt: Try,
    /// Seconds of runs after which the other form is tried again.
    again: f64,
    /// Whether what is kept on disk was looked at.
    recalled: bool,
    /// The side that is kept on disk.
    kept: Option<Side>,
}

impl Verdict {
    /// Seconds for a lane in groups, with their code if it `is_there`.
    fn in_groups(&self, is_there: bool) -> Option<f64> {
        if is_there { self.in_groups.of_lane() } else { self.by_steps.of_lane() }
    }

    /// Whether a try of the other form is worth what it costs, after runs of so many seconds.
    fn worth(&self, in_groups: Option<f64>, spent: f64, width: usize) -> bool {
        let Some(in_groups) = in_groups.or(self.by_steps.of_lane()) else { return false };
        let known = self.side == Side::Straight || self.straight.of_lane().is_some();
        let cost = (SLOWER + width as f64) * in_groups;
        cost <= WORTH * spent && (!known || spent >= self.again)
    }

    /// What becomes of a shard that begins, or looks at the clock. `worth`: whether a try of the other form is.
    fn next(&mut self, role: Role, in_groups: Option<f64>, (spent, worth): (f64, bool)) -> Role {
        let other = if self.side == Side::Groups { Side::Straight } else { Side::Groups };
        match (role, self.attempt) {
            (Role::Begins, Try::Due) => {
                self.attempt = Try::Made;
                Role::Tries(other)
            }
            (Role::Tries(_), _) => {
                let (Some(in_groups), Some(straight)) = (in_groups, self.straight.of_lane()) else {
                    return Role::Tries(other);
                };
                let (tried, chosen) = if other == Side::Groups { (in_groups, straight) } else { (straight, in_groups) };
                if tried * MARGIN < chosen {
                    self.side = other;
                }
                (self.attempt, self.again) = (Try::None, 2.0 * spent);
                Role::Takes(self.side)
            }
            (Role::Takes(side), Try::None) if side == self.side && worth => {
                self.attempt = Try::Due;
                match other {
                    Side::Groups => self.in_groups = Pace::default(),
                    Side::Straight => self.straight = Pace::default(),
                }
                Role::Takes(other)
            }
            _ => Role::Takes(self.side),
        }
    }
}

/// What a shard does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// It has no lanes yet.
    Begins,
    /// It takes lanes in this form.
    Takes(Side),
    /// It does to see how long they take.
    Tries(Side),
}

impl Role {
    fn side(self) -> Side {
        match self {
            Role::Begins => Side::Groups,
            Role::Takes(side) | Role::Tries(side) => side,
        }
    }
}

impl Choice {
    /// For a program; nothing happens yet.
    pub(in crate::backend::cpu) fn new(program: &Units, precision: Precision) -> Self {
        let beside = |form| Beside::new(program.clone(), form, precision);
        Self::between(beside(Form::Groups), beside(Form::OneLane))
    }

    fn between(groups: Beside, one_lane: Beside) -> Self {
        Self { groups, one_lane, verdict: Mutex::default() }
    }

    /// The code of groups of lanes.
    pub(in crate::backend::cpu) fn groups(&self) -> &Beside {
        &self.groups
    }

    /// The straight code of one lane.
    pub(in crate::backend::cpu) fn one_lane(&self) -> &Beside {
        &self.one_lane
    }

    /// The straight code, where it is there and has a function.
    fn straight(&self) -> Option<&Native> {
        self.one_lane.native().filter(|native| native.body(0).straight().is_some())
    }

    /// What becomes of a shard.
    fn next(&self, role: Role, run: Run) -> Role {
        let Run { busy, width, .. } = run;
        let run = run.began.elapsed();
        let mut verdict = self.verdict();
        self.recall(&mut verdict);
        let is_there = self.groups.native().is_some();
        let (in_groups, spent) = (verdict.in_groups(is_there), (self.groups.spent() + run).as_secs_f64());
        if !is_there && !self.one_lane.is_at_work() {
            // Straight shards look out for nothing.
            self.groups.passed(run, busy);
        }
        let worth = verdict.worth(in_groups, spent, width);
        if self.straight().is_some() {
            return verdict.next(role, in_groups, (spent, worth));
        }
        // Where it was faster before, it is looked for at once.
        let later = if verdict.side == Side::Straight { 0.0 } else { LATER };
        if (worth || later == 0.0) && !self.groups.is_at_work() {
            self.one_lane.passed_after(later, run, busy);
        }
        Role::Takes(Side::Groups)
    }

    /// Begins with what earlier processes have measured, once it is known what it is kept under.
    fn recall(&self, verdict: &mut Verdict) {
        let Some(recalled) = (!verdict.recalled).then(|| self.groups.recalled()).flatten() else { return };
        verdict.recalled = true;
        if let Some([in_groups, straight]) = recalled {
            verdict.side = if straight < in_groups { Side::Straight } else { Side::Groups };
            (verdict.in_groups, verdict.straight) = (Pace::recalled(in_groups), Pace::recalled(straight));
            verdict.kept = Some(verdict.side);
        }
    }

    /// A run ends that has taken so long.
    pub(super) fn add(&self, run: Duration, stopped: bool) {
        self.groups.add(run, stopped);
        self.one_lane.add(run, stopped);
        let times = {
            let mut verdict = self.verdict();
            let (Some(in_groups), Some(straight)) = (verdict.in_groups.of_lane(), verdict.straight.of_lane()) else {
                return;
            };
            let side = Some(verdict.side);
            if verdict.attempt != Try::None || std::mem::replace(&mut verdict.kept, side) == side {
                return;
            }
            // What is kept says who is chosen.
            match verdict.side {
                Side::Groups => [in_groups, straight.max(in_groups)],
                Side::Straight => [in_groups, straight.min(0.999 * in_groups)],
            }
        };
        self.groups.keep(&times);
    }

    fn verdict(&self) -> MutexGuard<'_, Verdict> {
        lock(&self.verdict)
    }
}

/// Who takes lanes in the run of a test: first a shard of groups, then straight code, then groups again, each so many.
#[derive(Debug)]
pub struct Turns<'a> {
    pub(super) groups: &'a Native,
    pub(super) straight: &'a Native,
    lanes: usize,
    begun: AtomicUsize,
}

impl<'a> Turns<'a> {
    /// With this code, and a change after so many lanes have come to their end.
    pub fn new(groups: &'a Native, straight: &'a Native, lanes: usize) -> Self {
        Self { groups, straight, lanes, begun: AtomicUsize::new(0) }
    }

    /// The shards that there have been.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

/// The way of one shard: what runs its lanes, and whether it takes more of them.
#[derive(Debug)]
pub(in crate::backend::cpu) struct Course<'a> {
    chooser: Chooser<'a>,
    role: Role,
    /// Whether lanes are measured with generated code.
    coded: bool,
    /// Lanes that were begun in another way, and are not measured.
    skipped: usize,
    /// Lanes that came to their end since the last look at the clock, and how many more do before the next.
    done: usize,
    left: usize,
    looked: Instant,
    /// Whether it leaves other lanes to a shard of the other form.
    yields: bool,
}

#[derive(Clone, Copy, Debug)]
enum Chooser<'a> {
    Nobody,
    /// By what is measured, in a run.
    Measured(&'a Choice, Run),
    InTurns(&'a Turns<'a>),
}

/// A run whose lanes are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) began: Instant,
    /// Whether it leaves no core to others.
    pub(super) busy: bool,
    /// Lanes of a shard of groups.
    pub(super) width: usize,
}

impl<'a> Course<'a> {
    /// A shard without a choice.
    pub(super) fn without() -> Self {
        Self::of(Chooser::Nobody, Role::Takes(Side::Groups))
    }

    fn of(chooser: Chooser<'a>, role: Role) -> Self {
        Self { chooser, role, coded: false, skipped: 0, done: 0, left: 1, looked: Instant::now(), yields: false }
    }

    /// A shard of a run that has begun with the code of groups or without it.
    pub(super) fn measured(choice: &'a Choice, run: Run, coded: bool) -> Self {
        let role = choice.next(Role::Begins, run);
        let mut course = Self::of(Chooser::Measured(choice, run), role);
        course.coded = coded;
        course
    }

    pub(super) fn in_turns(turns: &'a Turns<'a>) -> Self {
        let groups = turns.begun.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        let side = if groups { Side::Groups } else { Side::Straight };
        let mut course = Self::of(Chooser::InTurns(turns), Role::Takes(side));
        course.left = turns.lanes;
        course
    }

    /// The straight code that is to run its lanes, one after the other.
    pub(in crate::backend::cpu) fn straight(&self) -> Option<&'a Native> {
        match (self.role.side(), self.chooser) {
            (Side::Groups, _) | (_, Chooser::Nobody) => None,
            (Side::Straight, Chooser::Measured(choice, ..)) => choice.straight(),
            (Side::Straight, Chooser::InTurns(turns)) => Some(turns.straight),
        }
    }

    /// So many lanes came to their end, in a shard of this width. Whether it takes others; if not, it never does again, and
    /// a shard of the other form does.
    #[inline]
    pub(in crate::backend::cpu) fn goes_on(&mut self, lanes: usize, width: usize) -> bool {
        if matches!(self.chooser, Chooser::Nobody) {
            return true;
        }
        self.done += lanes;
        self.left = self.left.saturating_sub(lanes);
        if self.left == 0 && !self.yields {
            self.yields = !self.looks(width);
        }
        !self.yields
    }

    /// Whether it leaves other lanes to a shard of the other form.
    pub(in crate::backend::cpu) fn yields(&self) -> bool {
        self.yields
    }

    #[cold]
    fn looks(&mut self, width: usize) -> bool {
        let Chooser::Measured(choice, run) = self.chooser else { return false };
        // What is half done in the other lanes is as much as was half done before, once all slots have changed hands.
        let all = width.max(self.skipped);
        if self.done < all {
            self.left = all - self.done;
            return true;
        }
        let now = Instant::now();
        let since = now - self.looked;
        if self.skipped == 0 {
            self.pace(&mut choice.verdict()).add(self.done, since);
        }
        self.left = match since {
            short if short < LOOKS.start => 2 * self.done,
            long if long > LOOKS.end => (self.done / 2).max(1),
            _ => self.done,
        };
        (self.done, self.skipped, self.looked) = (0, 0, now);
        let (before, next) = (self.role, choice.next(self.role, run));
        let goes_on = next.side() == before.side();
        // A shard that takes no more lanes has made its try; the next one is another's.
        self.role = if goes_on { next } else { Role::Takes(before.side()) };
        goes_on
    }

    fn pace<'v>(&self, verdict: &'v mut Verdict) -> &'v mut Pace {
        match self.role.side() {
            Side::Straight => &mut verdict.straight,
            Side::Groups if self.coded => &mut verdict.in_groups,
            Side::Groups => &mut verdict.by_steps,
        }
    }

    /// Generated functions came to a shard of groups of this width: its lanes are half done without them.
    pub(in crate::backend::cpu) fn changed(&mut self, width: usize) {
        if matches!(self.chooser, Chooser::Measured(..)) {
            (self.coded, self.skipped, self.done, self.left) = (true, width, 0, 1);
        }
    }

    /// The shard has brought all its lanes to their end.
    pub(in crate::backend::cpu) fn ended(&mut self) {
        let Chooser::Measured(choice, _) = self.chooser else { return };
        if self.skipped == 0 && self.done > 0 {
            self.pace(&mut choice.verdict()).add(self.done, self.looked.elapsed());
        }
    }
}

impl Drop for Course<'_> {
    /// A try that came to no verdict, for want of lanes or of memory or since the run was stopped, is made again.
    fn drop(&mut self) {
        if let (Chooser::Measured(choice, _), Role::Tries(_)) = (self.chooser, self.role) {
            let mut verdict = choice.verdict();
            if verdict.attempt == Try::Made {
                verdict.attempt = Try::Due;
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "codegen")]
mod tests {
    use super::*;
    use crate::backend::cpu::codegen::tests::beside::compiled;

    /// In groups a lane takes 2 ms, in straight code so long; runs have taken so many seconds.
    fn verdict(straight: Option<f64>) -> Verdict {
        let straight = straight.map_or_else(Pace::default, Pace::recalled);
        Verdict { in_groups: Pace::recalled(2e-3), straight, ..Verdict::default() }
    }

    fn look(verdict: &mut Verdict, role: Role, spent: f64) -> Role {
        let in_groups = verdict.in_groups(true);
        let worth = verdict.worth(in_groups, spent, 10);
        verdict.next(role, in_groups, (spent, worth))
    }

    const GROUPS: Role = Role::Takes(Side::Groups);
    const STRAIGHT: Role = Role::Takes(Side::Straight);

    #[test]
    fn a_try_costs_a_small_part_of_what_was_spent() {
        // A shard of ten lanes and one that is eight times as slow are 36 ms.
        assert_eq!(look(&mut verdict(None), GROUPS, 1.1), GROUPS);
        assert_eq!(look(&mut verdict(None), GROUPS, 1.3), STRAIGHT);
        // Where nothing is known of groups, nothing is tried.
        let mut unknown = Verdict::default();
        assert_eq!(look(&mut unknown, GROUPS, 1e9), GROUPS);
    }

    #[test]
    fn one_shard_tries_and_the_others_go_on() {
        let mut verdict = verdict(None);
        assert_eq!(look(&mut verdict, GROUPS, 2.0), STRAIGHT);
        // The others look before the one that yields begins anew, and after.
        assert_eq!(look(&mut verdict, GROUPS, 2.0), GROUPS);
        assert_eq!(look(&mut verdict, Role::Begins, 2.0), Role::Tries(Side::Straight));
        assert_eq!(look(&mut verdict, Role::Begins, 2.0), GROUPS);
        assert_eq!(look(&mut verdict, GROUPS, 2.0), GROUPS);
        // Too little was measured.
        verdict.straight.add(1, ENOUGH / 2);
        assert_eq!(look(&mut verdict, Role::Tries(Side::Straight), 2.0), Role::Tries(Side::Straight));
    }

    #[test]
    fn who_is_faster_by_a_margin_takes_the_next_lanes() {
        for (seconds, wins) in [(1e-3, STRAIGHT), (1.9e-3, GROUPS), (3e-3, GROUPS)] {
            let mut verdict = verdict(None);
            assert_eq!(look(&mut verdict, GROUPS, 2.0), STRAIGHT);
            assert_eq!(look(&mut verdict, Role::Begins, 2.0), Role::Tries(Side::Straight));
            verdict.straight = Pace::recalled(seconds);
            assert_eq!(look(&mut verdict, Role::Tries(Side::Straight), 2.0), wins, "{seconds}");
            // All others follow.
            assert_eq!(look(&mut verdict, GROUPS, 2.0), wins, "{seconds}");
            assert_eq!(look(&mut verdict, Role::Begins, 2.0), wins, "{seconds}");
        }
    }

    #[test]
    fn who_lost_is_tried_again_when_as_much_was_spent_again() {
        let mut lost = verdict(Some(3e-3));
        (lost.again, lost.side) = (4.0, Side::Groups);
        assert_eq!(look(&mut lost, GROUPS, 3.9), GROUPS);
        assert_eq!(look(&mut lost, GROUPS, 4.1), STRAIGHT);
        let mut won = verdict(Some(1e-3));
        (won.again, won.side) = (4.0, Side::Straight);
        assert_eq!(look(&mut won, STRAIGHT, 3.9), STRAIGHT);
        assert_eq!(look(&mut won, STRAIGHT, 4.1), GROUPS);
        assert_eq!(look(&mut won, Role::Begins, 4.1), Role::Tries(Side::Groups));
        won.in_groups = Pace::recalled(0.5e-3);
        assert_eq!(look(&mut won, Role::Tries(Side::Groups), 4.1), GROUPS);
    }

    #[test]
    fn a_shard_that_yields_never_takes_lanes_again_and_a_try_that_breaks_off_is_made_again() {
        let (Some(groups), Some(one_lane)) = (compiled(Form::Groups), compiled(Form::OneLane)) else { return };
        let choice = Choice::between(groups, one_lane);
        let run = Run { began: Instant::now(), busy: true, width: 4 };
        let begin = || Course::measured(&choice, run, true);
        // Hours were spent on lanes of a second, with which what the test itself takes is nothing.
        choice.groups.add(Duration::from_secs(10_000), false);
        choice.verdict().in_groups = Pace { lanes: 1e6, seconds: 1e6 };
        let mut course = begin();
        assert_eq!(course.role, GROUPS);
        // Until all its slots have changed hands it does not look.
        assert!(course.goes_on(1, 4) && course.goes_on(2, 4));
        assert!(!course.goes_on(1, 4) && course.yields());
        assert!((0..10).all(|_| !course.goes_on(1, 4)));
        course.ended();
        for _ in 0..2 {
            let trying = begin();
            assert_eq!(trying.role, Role::Tries(Side::Straight));
            assert!(trying.straight().is_some());
            assert_eq!(begin().role, GROUPS);
        }
        // It wins, and all follow.
        let mut trying = begin();
        choice.verdict().straight = Pace { lanes: 1e6, seconds: 1.0 };
        assert!(trying.goes_on(1, 1));
        assert_eq!((trying.role, begin().role), (STRAIGHT, STRAIGHT));
        // Lanes that are half done when code comes are not measured.
        choice.verdict().side = Side::Groups;
        let mut course = begin();
        course.changed(4);
        let before = choice.verdict().in_groups;
        assert!((0..3).all(|_| course.goes_on(1, 4)));
        course.ended();
        assert_eq!(choice.verdict().in_groups.lanes, before.lanes);
    }

    #[test]
    fn what_was_measured_long_ago_is_forgotten() {
        let mut pace = Pace::default();
        pace.add(10, ENOUGH / 2);
        assert_eq!(pace.of_lane(), None);
        (0..20).for_each(|_| pace.add(10, MEMORY / 2));
        assert!((pace.of_lane().unwrap() - 0.025).abs() < 1e-3);
        (0..20).for_each(|_| pace.add(1, MEMORY / 2));
        assert!((pace.of_lane().unwrap() - 0.25).abs() < 1e-2);
    }
}
