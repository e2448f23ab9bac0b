//! Which form of code runs the lanes of a shard (`--codegen auto`): groups of lanes, or straight code for one lane after
//! the other.
//!
//! Which one does more depends on the program, its data, and how many lanes a shard has. Arithmetic on reals that all
//! lanes do alike is several times as fast in groups; where lanes go ways of their own, and read and write elements at
//! indices of their own, straight code is. So both are measured, and whoever is faster goes on with the lanes: with those
//! that no shard has taken, and with those that are under way, which change over between any two units.
//!
//! **Work** is counted in visits of the unit that weighs most, the gradient of a sampler say, and in lanes that come to their
//! end. So of lanes that take long it is known after a few visits what they cost in either form, and of those that make
//! none it is known when they end.
//!
//! **What a try costs.** One lane of a shard goes on in straight code while the others wait, or all of them in groups, until
//! it is known how long that takes. It is taken to be slower by no more than the lanes of a vector. A try begins when all
//! that is a small part of what the runs of the program have taken, on one thread. The compiler of straight code starts
//! later than that of groups, which is likely to be what serves; but of one or two lanes a shard straight code is, and
//! goes on with them when it is there.
//!
//! **Verdicts.** There is one for each number of lanes that go on together, by powers of two, or it follows from that
//! of more of them, or of fewer. A form must be faster by a margin to take over. Whoever lost is tried again when the
//! runs have taken twice as long, since the machine may have been busy, and the next lanes may be others. Both times
//! are kept on disk beside the code of groups, and the next process begins with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::beside::lock;
use super::lookout::LOOKS;
use super::{Beside, Native};
use crate::backend::{Form, Units};
use crate::types::Precision;

/// A form of code is taken to need no more than so many times what the other one needs.
const SLOWER: f64 = 8.0;
/// What a try may cost, in parts of the time that runs have taken.
const WORTH: f64 = 0.03;
/// How many times as fast a form must be to take over.
const MARGIN: f64 = 1.1;
/// A measurement of less time than this says little.
const ENOUGH: Duration = Duration::from_millis(2);
/// What was measured before is not looked at again before runs have taken so many seconds.
const RECALLED: f64 = 2.0;
/// A verdict says something of other numbers of lanes until so many times the seconds after which it is looked at again.
const IMPLIES: f64 = 4.0;
/// Tries end after so many lanes of which nothing can be measured.
const MOST_VAIN: u32 = 2;
/// Of what was measured before the last so much, half is forgotten.
const MEMORY: Duration = Duration::from_millis(500);
/// How much later the compiler of what is less likely to serve starts than the other one.
pub(super) const LATER: f64 = 4.0;
/// How long a lane goes on in straight code before the next one does: chains that are stopped have about as many draws.
const TURN: Duration = Duration::from_millis(100);
/// And so many times what moving it took.
const MOVES: u32 = 128;
/// Numbers of lanes with a verdict of their own: one, two, up to four, eight, and so on.
const CLASSES: usize = 12;
/// Lanes of a shard up to which straight code is quicker in every second program.
const SOME: usize = 4;
/// Lanes of a shard up to which straight code is taken to be quicker: `benches/RESULTS.md` has what was measured.
pub(in crate::backend::cpu) const FEW: usize = 2;

/// Both forms of code of a program, and what they do.
#[derive(Debug)]
pub struct Choice {
    groups: Beside,
    one_lane: Beside,
    verdicts: Mutex<[Verdict; CLASSES]>,
}

/// Who runs lanes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Side {
    #[default]
    Groups,
    Straight,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Side::Groups => Side::Straight,
            Side::Straight => Side::Groups,
        }
    }
}

/// What work took.
#[derive(Clone, Copy, Default, Debug)]
struct Pace {
    work: f64,
    seconds: f64,
}

impl Pace {
    /// What was measured before, which counts little.
    fn recalled(seconds: f64) -> Self {
        let work = 2.0 * ENOUGH.as_secs_f64() / seconds;
        Self { work, seconds: work * seconds }
    }
    fn add(&mut self, work: u64, time: Duration) {
        if self.seconds > MEMORY.as_secs_f64() {
            (self.work, self.seconds) = (0.5 * self.work, 0.5 * self.seconds);
        }
        (self.work, self.seconds) = (self.work + work as f64, self.seconds + time.as_secs_f64());
    }
    /// Seconds of a thread for a piece of work, where enough of it was measured.
    fn known(self) -> Option<f64> {
        (self.work > 0.0 && self.seconds >= ENOUGH.as_secs_f64()).then(|| self.seconds / self.work)
    }
}

/// What is known of both forms.
#[derive(Clone, Copy, Default, Debug)]
struct Verdict {
    side: Side,
    /// Of groups without their code, of groups with it, and of straight code.
    by_steps: Pace,
    in_groups: Pace,
    straight: Pace,
    /// Whether a shard tries the form that is not chosen.
    is_tried: bool,
    /// Seconds of runs after which the other form is tried again.
    again: f64,
    /// Whether the code of groups was there at the last look.
    was_there: bool,
    /// Whether the side was measured, here or before.
    is_known: bool,
    /// Whether what is kept on disk was looked at.
    recalled: bool,
    /// The side that is kept on disk.
    kept: Option<Side>,
}

impl Verdict {
    /// Before anything is known, of so many lanes.
    fn before(lanes: usize) -> Self {
        Self { side: if lanes <= FEW { Side::Straight } else { Side::Groups }, ..Self::default() }
    }

    /// Seconds for work in groups, with their code if it `is_there`.
    fn in_groups(&self, is_there: bool) -> Option<f64> {
        if is_there { self.in_groups.known() } else { self.by_steps.known() }
    }

    /// Whether a try of the other form is worth what it costs, after runs of so many seconds.
    fn is_worth(&self, is_there: bool, spent: f64, lanes: usize) -> bool {
        let in_groups = self.in_groups(is_there);
        let cost = match self.side {
            Side::Groups => in_groups.map(|seconds| 2.0 * SLOWER * seconds),
            // Each lane makes its way to where work is done.
            Side::Straight => {
                let likely = in_groups.or(self.by_steps.known());
                let seconds = |straight| 2.0 * lanes as f64 * likely.unwrap_or(SLOWER * straight);
                self.straight.known().map(seconds)
            }
        };
        cost.is_some_and(|cost| ENOUGH.as_secs_f64() + cost <= WORTH * spent && spent >= self.again)
    }

    /// What a shard of so many lanes does next.
    fn next(&mut self, role: Role, is_there: bool, spent: f64, lanes: usize) -> Role {
        if is_there && !std::mem::replace(&mut self.was_there, true) {
            // It was never tried.
            self.again = 0.0;
        }
        let in_groups = match role {
            // Code of groups that came meanwhile runs nothing here.
            Role::Tries(Side::Straight) => self.in_groups(is_there).or(self.by_steps.known()),
            _ => self.in_groups(is_there),
        };
        match (role, in_groups, self.straight.known()) {
            (Role::Tries(_), Some(in_groups), Some(straight)) if self.is_tried => {
                self.decide((in_groups, straight), spent);
                if is_there && self.in_groups.known().is_none() {
                    // Code that came meanwhile was not tried.
                    (self.is_known, self.again) = (false, 0.0);
                }
                Role::Takes(self.side)
            }
            (Role::Tries(tried), ..) if self.is_tried && tried != self.side => role,
            _ if !self.is_tried && self.is_worth(is_there, spent, lanes) => {
                self.is_tried = true;
                let tried = self.side.other();
                *match tried {
                    Side::Groups if is_there => &mut self.in_groups,
                    Side::Groups => &mut self.by_steps,
                    Side::Straight => &mut self.straight,
                } = Pace::default();
                Role::Tries(tried)
            }
            _ => Role::Takes(self.side),
        }
    }

    /// Who is faster by a margin takes over.
    fn decide(&mut self, (in_groups, straight): (f64, f64), spent: f64) {
        let (other, chosen) = match self.side {
            Side::Groups => (straight, in_groups),
            Side::Straight => (in_groups, straight),
        };
        if other * MARGIN < chosen {
            self.side = self.side.other();
        }
        (self.is_tried, self.is_known, self.again) = (false, true, 2.0 * spent);
    }
}

/// What a shard does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// It runs lanes in this form.
    Takes(Side),
    /// It does to see how long they take.
    Tries(Side),
}

impl Role {
    fn side(self) -> Side {
        match self {
            Role::Takes(side) | Role::Tries(side) => side,
        }
    }
}

/// The place of the verdict of so many lanes.
fn class(lanes: usize) -> usize {
    (lanes.max(1).next_power_of_two().ilog2() as usize).min(CLASSES - 1)
}

/// The side that is known to be faster with a class of lanes since it is with more of them, or with fewer: fewer lanes make
/// groups slower for each of them, and no more make straight code quicker. The nearest of those that were measured not long
/// before `spent` seconds of runs says so.
fn implied(verdicts: &[Verdict], class: usize, spent: f64) -> Option<Side> {
    let says = |at: &usize| verdicts[*at].is_known && spent < IMPLIES * verdicts[*at].again;
    let more = (class + 1..verdicts.len()).find(says).filter(|at| verdicts[*at].side == Side::Straight);
    let fewer = (0..class).rev().find(says).filter(|at| verdicts[*at].side == Side::Groups);
    match (more, fewer) {
        (Some(more), Some(fewer)) if class - fewer < more - class => Some(Side::Groups),
        (Some(_), _) => Some(Side::Straight),
        (None, Some(_)) => Some(Side::Groups),
        (None, None) => None,
    }
}

impl Choice {
    /// For a program; nothing happens yet.
    pub(in crate::backend::cpu) fn new(program: &Units, precision: Precision) -> Self {
        let beside = |form| Beside::new(program.clone(), form, precision);
        Self::between(beside(Form::Groups), beside(Form::OneLane))
    }

    fn between(groups: Beside, one_lane: Beside) -> Self {
        let verdicts = std::array::from_fn(|class| Verdict::before(1 << class));
        Self { groups, one_lane, verdicts: Mutex::new(verdicts) }
    }

    /// The code of groups of lanes.
    pub(in crate::backend::cpu) fn groups(&self) -> &Beside {
        &self.groups
    }

    /// The straight code of one lane.
    pub(in crate::backend::cpu) fn one_lane(&self) -> &Beside {
        &self.one_lane
    }

    /// The straight code, where it is there and has the unit that weighs most.
    pub(super) fn straight(&self) -> Option<&Native> {
        let serves = |native: &&Native| native.body(0).straight().is_some_and(|straight| straight.segment.counts);
        self.one_lane.native().filter(serves)
    }

    /// The code that shards wait for; `few`: whether they have no more lanes than straight code is taken to be quicker for.
    pub(super) fn awaited(&self, few: bool) -> &Beside {
        let serves = || match self.one_lane.native() {
            Some(_) => self.straight().is_some(),
            None => self.one_lane.may_come(),
        };
        if few && serves() { &self.one_lane } else { &self.groups }
    }

    /// Seconds that runs have taken so far.
    fn spent(&self, run: Run) -> f64 {
        (self.groups.spent() + run.began.elapsed()).as_secs_f64()
    }

    /// What becomes of a shard in which so many lanes go on together.
    fn next(&self, role: Role, run: Run, lanes: usize) -> Role {
        let Run { busy, few, .. } = run;
        let ran = run.began.elapsed();
        let mut verdicts = self.verdicts();
        let (is_there, spent) = (self.groups.native().is_some(), self.spent(run));
        self.recall(&mut verdicts[class(lanes)], class(lanes), spent);
        let implied = implied(&verdicts[..], class(lanes), spent);
        let verdict = &mut verdicts[class(lanes)];
        if !verdict.is_known && !verdict.is_tried {
            // The last lanes of many are not worth a shard of their own before that is known.
            let before = if few { Verdict::before(lanes).side } else { Side::Groups };
            verdict.side = implied.unwrap_or(before);
        }
        let awaited = self.awaited(few);
        if !is_there && !self.one_lane.is_at_work() {
            // Lanes in straight code look out for nothing.
            awaited.passed(ran, busy);
        }
        if self.straight().is_some() {
            if few && !is_there {
                self.groups.passed_after(LATER, ran, busy);
            }
            if implied.is_some() && !verdict.is_known && !verdict.is_tried {
                // A try would say what is known.
                return Role::Takes(verdict.side);
            }
            return verdict.next(role, is_there, spent, lanes);
        }
        // Where it was faster before, it is looked for at once.
        let was_faster = verdict.side == Side::Straight && verdict.is_known || implied == Some(Side::Straight);
        let later = match lanes {
            _ if was_faster => Some(0.0),
            _ if !Verdict { side: Side::Groups, ..*verdict }.is_worth(is_there, spent, lanes) => None,
            ..=SOME => Some(0.5 * LATER),
            _ => Some(LATER),
        };
        if let Some(later) = later.filter(|_| !self.groups.is_at_work()) {
            self.one_lane.passed_after(later, ran, busy);
        }
        Role::Takes(Side::Groups)
    }

    /// Begins with what earlier processes have measured, once it is known what it is kept under.
    fn recall(&self, verdict: &mut Verdict, class: usize, spent: f64) {
        let Some(recalled) = (!verdict.recalled && !verdict.is_tried).then(|| self.groups.recalled(class)).flatten()
        else {
            return;
        };
        verdict.recalled = true;
        if let Some([in_groups, straight]) = recalled {
            verdict.side = if straight < in_groups { Side::Straight } else { Side::Groups };
            (verdict.in_groups, verdict.straight) = (Pace::recalled(in_groups), Pace::recalled(straight));
            (verdict.kept, verdict.is_known) = (Some(verdict.side), true);
            (verdict.was_there, verdict.again) = (true, RECALLED.max(2.0 * spent));
        }
    }

    /// A run ends that has taken so long.
    pub(super) fn add(&self, run: Duration, stopped: bool) {
        self.groups.add(run, stopped);
        self.one_lane.add(run, stopped);
        for class in 0..CLASSES {
            let times = {
                let verdict = &mut self.verdicts()[class];
                let (Some(in_groups), Some(straight)) = (verdict.in_groups.known(), verdict.straight.known()) else {
                    continue;
                };
                let side = Some(verdict.side);
                if verdict.is_tried || !verdict.is_known || std::mem::replace(&mut verdict.kept, side) == side {
                    continue;
                }
                // What is kept says who is chosen.
                match verdict.side {
                    Side::Groups => [in_groups, straight.max(in_groups)],
                    Side::Straight => [in_groups, straight.min(0.999 * in_groups)],
                }
            };
            self.groups.keep(class, &times);
        }
    }

    fn verdicts(&self) -> MutexGuard<'_, [Verdict; CLASSES]> {
        lock(&self.verdicts)
    }
}

/// Who runs lanes in the run of a test: groups and straight code in turns of so many supersteps of the groups, and of so many
/// slices of straight code, of one visit each.
#[derive(Debug)]
pub struct Turns<'a> {
    pub(super) groups: Option<&'a Native>,
    pub(super) straight: &'a Native,
    turns: [usize; 2],
    changes: AtomicUsize,
}

impl<'a> Turns<'a> {
    /// With this code, or with the steps in groups.
    pub fn new(groups: Option<&'a Native>, straight: &'a Native, turns: [usize; 2]) -> Self {
        Self { groups, straight, turns, changes: AtomicUsize::new(0) }
    }

    /// How often shards have changed over.
    pub fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}

/// The way of one shard: what runs its lanes.
#[derive(Debug)]
pub(in crate::backend::cpu) struct Course<'a> {
    chooser: Chooser<'a>,
    role: Role,
    /// Whether groups are measured with generated code.
    coded: bool,
    /// Work that was begun in another way, and is not measured.
    skipped: u64,
    /// Work since the last look at the clock, and how much more there is before the next.
    done: u64,
    left: u64,
    looked: Instant,
    /// The verdict of the lanes that were there at the last look.
    class: usize,
    /// Lanes of which nothing could be measured since it has gone over to this form.
    vain: u32,
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
    /// Whether its shards have few lanes.
    pub(super) few: bool,
}

impl<'a> Course<'a> {
    /// A shard without a choice.
    pub(in crate::backend::cpu) fn without() -> Self {
        Self::of(Chooser::Nobody, Role::Takes(Side::Groups))
    }

    fn of(chooser: Chooser<'a>, role: Role) -> Self {
        let (coded, skipped, done, left, class, vain) = (false, 0, 0, 1, 0, 0);
        Self { chooser, role, coded, skipped, done, left, looked: Instant::now(), class, vain }
    }

    /// A shard of so many lanes, of a run that has begun with the code of groups or without it.
    pub(super) fn measured(choice: &'a Choice, run: Run, (coded, lanes): (bool, usize)) -> Self {
        let role = choice.next(Role::Takes(Side::Groups), run, lanes);
        let mut course = Self::of(Chooser::Measured(choice, run), role);
        (course.coded, course.class) = (coded, class(lanes));
        course
    }

    pub(super) fn in_turns(turns: &'a Turns<'a>) -> Self {
        let mut course = Self::of(Chooser::InTurns(turns), Role::Takes(Side::Groups));
        course.left = turns.turns[0] as u64;
        if course.left == 0 {
            course.take_turns(turns);
        }
        course
    }

    /// The straight code that is to run its lanes, one after the other.
    #[inline]
    pub(in crate::backend::cpu) fn straight(&self) -> Option<&'a Native> {
        match (self.role.side(), self.chooser) {
            (Side::Groups, _) | (_, Chooser::Nobody) => None,
            (Side::Straight, Chooser::Measured(choice, ..)) => choice.straight(),
            (Side::Straight, Chooser::InTurns(turns)) => Some(turns.straight),
        }
    }

    /// So much work was done. Whether it is time for a [look](Self::look).
    #[inline]
    pub(in crate::backend::cpu) fn did(&mut self, work: u64) -> bool {
        let passes = match self.chooser {
            Chooser::Nobody => return false,
            Chooser::Measured(..) => work,
            Chooser::InTurns(_) => 1,
        };
        self.done += work;
        self.left = self.left.saturating_sub(passes);
        self.left == 0
    }

    /// How much work a lane does in straight code before the next look.
    pub(in crate::backend::cpu) fn slice(&self) -> u64 {
        if matches!(self.chooser, Chooser::InTurns(_)) { 1 } else { self.left.max(1) }
    }

    /// How long a lane goes on in straight code while others wait, where it took so long to move it.
    pub(in crate::backend::cpu) fn turn(&self, moved: Duration) -> Duration {
        if matches!(self.chooser, Chooser::InTurns(_)) { Duration::ZERO } else { TURN.max(MOVES * moved) }
    }

    /// Whether what was measured changes who runs the lanes, of which so many go on together.
    #[cold]
    pub(in crate::backend::cpu) fn look(&mut self, lanes: usize) {
        let (choice, run) = match self.chooser {
            Chooser::Nobody => return,
            Chooser::InTurns(turns) => return self.take_turns(turns),
            Chooser::Measured(choice, run) => (choice, run),
        };
        // In groups all lanes go on together, and some of them are always half done.
        let fewest = if self.role.side() == Side::Groups { lanes as u64 } else { 1 }.max(self.skipped);
        if self.done < fewest {
            self.left = fewest - self.done;
            return;
        }
        let now = Instant::now();
        let since = now.saturating_duration_since(self.looked);
        let (before, class) = (std::mem::replace(&mut self.class, class(lanes)), class(lanes));
        if self.skipped == 0 && before == class {
            self.pace(&mut choice.verdicts()[class]).add(self.done, since);
        }
        self.left = match since {
            short if short < LOOKS.start => 2 * self.done,
            long if long > LOOKS.end => (self.done / 2).max(1),
            _ => self.done,
        };
        (self.done, self.skipped, self.looked) = (0, 0, now);
        let side = self.role.side();
        if before != class {
            self.break_off(choice, run, before);
        }
        self.role = choice.next(self.role, run, lanes);
        if self.role.side() != side {
            // The first work finds nothing in the caches.
            (self.left, self.skipped, self.vain) = (1, 1, 0);
        }
    }

    /// Straight code that was awaited has come, to so many lanes.
    #[cold]
    pub(in crate::backend::cpu) fn straight_came(&mut self, lanes: usize) {
        let Chooser::Measured(choice, run) = self.chooser else { return };
        self.break_off(choice, run, self.class);
        self.role = choice.next(self.role, run, lanes);
        (self.class, self.done, self.left, self.skipped, self.looked) = (class(lanes), 0, 1, 1, Instant::now());
    }

    fn take_turns(&mut self, turns: &Turns<'_>) {
        let side = self.role.side().other();
        self.role = Role::Takes(side);
        self.left = turns.turns[usize::from(side == Side::Straight)] as u64;
        turns.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn pace<'v>(&self, verdict: &'v mut Verdict) -> &'v mut Pace {
        match self.role.side() {
            Side::Straight => &mut verdict.straight,
            Side::Groups if self.coded => &mut verdict.in_groups,
            Side::Groups => &mut verdict.by_steps,
        }
    }

    /// This time went to what is none of the work that is measured: lanes have changed over, say.
    pub(in crate::backend::cpu) fn spared(&mut self, time: Duration) {
        self.looked += time;
    }

    /// A lane came to its end of which nothing can be measured, since most of its way was done in groups.
    pub(in crate::backend::cpu) fn was_vain(&mut self, time: Duration) {
        self.spared(time);
        self.vain += 1;
        if let (Chooser::Measured(choice, run), true) = (self.chooser, self.vain > MOST_VAIN) {
            self.break_off(choice, run, self.class);
        }
    }

    /// Whether lanes that no shard has taken, if there are any, go on before others: one that was half done told a try
    /// nothing. In turns they do every second time.
    pub(in crate::backend::cpu) fn wants_whole(&self) -> bool {
        match self.chooser {
            Chooser::Nobody => false,
            Chooser::Measured(..) => self.vain > 0 && self.role == Role::Tries(Side::Straight),
            Chooser::InTurns(turns) => turns.changes() % 2 == 1,
        }
    }

    /// Generated functions came to a shard of groups in which so many lanes are half done without them.
    pub(in crate::backend::cpu) fn changed(&mut self, lanes: usize) {
        if matches!(self.chooser, Chooser::Measured(..)) {
            (self.coded, self.skipped, self.done, self.left) = (true, lanes as u64, 0, 1);
        }
    }

    /// There is no room for a lane in straight code: groups go on with all of them.
    pub(in crate::backend::cpu) fn without_straight(&mut self) {
        if let Chooser::Measured(choice, run) = self.chooser {
            self.break_off(choice, run, self.class);
        }
        (self.chooser, self.role) = (Chooser::Nobody, Role::Takes(Side::Groups));
    }

    /// The shard has brought all its lanes to their end.
    pub(in crate::backend::cpu) fn ended(&mut self) {
        let Chooser::Measured(choice, _) = self.chooser else { return };
        if self.skipped == 0 && self.done > 0 {
            self.pace(&mut choice.verdicts()[self.class]).add(self.done, self.looked.elapsed());
        }
    }

    /// A try comes to no verdict, and is made again when as much as it may have cost is little once more.
    fn break_off(&mut self, choice: &Choice, run: Run, class: usize) {
        if let Role::Tries(side) = self.role {
            let spent = choice.spent(run);
            let verdict = &mut choice.verdicts()[class];
            (verdict.is_tried, verdict.again) = (false, 1.5 * spent);
            self.role = Role::Takes(side.other());
        }
    }
}

impl Drop for Course<'_> {
    /// A try is broken off for want of lanes, or since the run was stopped.
    fn drop(&mut self) {
        if let Chooser::Measured(choice, run) = self.chooser {
            self.break_off(choice, run, self.class);
        }
    }
}

#[cfg(test)]
#[cfg(feature = "codegen")]
mod tests {
    use super::*;
    use crate::backend::cpu::codegen::tests::beside::compiled;

    const LANES: usize = 10;

    /// In groups work takes 2 ms, in straight code so long.
    fn verdict(straight: Option<f64>) -> Verdict {
        let straight = straight.map_or_else(Pace::default, Pace::recalled);
        Verdict { in_groups: Pace::recalled(2e-3), straight, was_there: true, ..Verdict::before(LANES) }
    }

    /// A shard looks after runs of so many seconds.
    fn look(verdict: &mut Verdict, role: Role, spent: f64) -> Role {
        verdict.next(role, true, spent, LANES)
    }

    const GROUPS: Role = Role::Takes(Side::Groups);
    const STRAIGHT: Role = Role::Takes(Side::Straight);
    const TRIES: Role = Role::Tries(Side::Straight);

    #[test]
    fn a_try_costs_a_small_part_of_what_was_spent() {
        // Two visits that are eight times as slow, and two milliseconds more, are 34 ms.
        assert_eq!(look(&mut verdict(None), GROUPS, 1.1), GROUPS);
        assert_eq!(look(&mut verdict(None), GROUPS, 1.2), TRIES);
        // Where nothing is known of groups, nothing is tried.
        assert_eq!(look(&mut Verdict::before(LANES), GROUPS, 1e9), GROUPS);
    }

    #[test]
    fn one_shard_tries_and_the_others_go_on() {
        let mut verdict = verdict(None);
        assert_eq!(look(&mut verdict, GROUPS, 2.0), TRIES);
        assert_eq!(look(&mut verdict, GROUPS, 2.0), GROUPS);
        // Too little was measured.
        verdict.straight.add(1, ENOUGH / 2);
        assert_eq!(look(&mut verdict, TRIES, 2.0), TRIES);
    }

    #[test]
    fn who_is_faster_by_a_margin_takes_over() {
        for (seconds, wins) in [(1e-3, STRAIGHT), (1.9e-3, GROUPS), (3e-3, GROUPS)] {
            let mut verdict = verdict(None);
            assert_eq!(look(&mut verdict, GROUPS, 2.0), TRIES);
            verdict.straight = Pace::recalled(seconds);
            assert_eq!(look(&mut verdict, TRIES, 2.0), wins, "{seconds}");
            // All others follow.
            assert_eq!(look(&mut verdict, GROUPS, 2.0), wins, "{seconds}");
        }
    }

    #[test]
    fn who_lost_is_tried_again_when_as_much_was_spent_again() {
        let mut lost = verdict(Some(3e-3));
        lost.again = 4.0;
        assert_eq!(look(&mut lost, GROUPS, 3.9), GROUPS);
        assert_eq!(look(&mut lost, GROUPS, 4.1), TRIES);
        let mut won = verdict(Some(1e-3));
        (won.again, won.side) = (4.0, Side::Straight);
        assert_eq!(look(&mut won, STRAIGHT, 3.9), STRAIGHT);
        assert_eq!(look(&mut won, STRAIGHT, 4.1), Role::Tries(Side::Groups));
        won.in_groups = Pace::recalled(0.5e-3);
        assert_eq!(look(&mut won, Role::Tries(Side::Groups), 4.1), GROUPS);
    }

    #[test]
    fn few_lanes_begin_with_straight_code_and_go_back_to_groups_that_do_more() {
        assert_eq!([1, 2, 3].map(|lanes| Verdict::before(lanes).side), [Side::Straight, Side::Straight, Side::Groups]);
        assert_eq!([1, 2, 3, 4, 5, 1 << 40].map(class), [0, 1, 2, 2, 3, CLASSES - 1]);
        for (in_groups, wins) in [(2e-3, STRAIGHT), (0.5e-3, GROUPS)] {
            for is_there in [false, true] {
                let mut few = Verdict { by_steps: Pace::recalled(9e-3), ..Verdict::before(2) };
                let look = |few: &mut Verdict, role| few.next(role, is_there, 10.0, 2);
                assert_eq!(look(&mut few, GROUPS), STRAIGHT, "nothing is known of straight code");
                few.straight = Pace::recalled(1e-3);
                assert_eq!(look(&mut few, STRAIGHT), Role::Tries(Side::Groups));
                let pace = if is_there { &mut few.in_groups } else { &mut few.by_steps };
                *pace = Pace::recalled(in_groups);
                assert_eq!(look(&mut few, Role::Tries(Side::Groups)), wins);
                // Code that comes later is tried at once.
                let tried = !is_there && wins == STRAIGHT;
                let later = if tried { Role::Tries(Side::Groups) } else { wins };
                assert_eq!(few.next(wins, true, 10.0, 2), later);
            }
        }
    }

    /// A choice with code in both forms, and a run of many lanes; none where there is no compiler.
    fn choice_and_run() -> Option<(Choice, Run)> {
        let choice = Choice::between(compiled(Form::Groups)?, compiled(Form::OneLane)?);
        Some((choice, Run { began: Instant::now(), busy: true, few: false }))
    }

    #[test]
    fn a_try_that_breaks_off_is_made_again_and_all_follow_who_wins() {
        let Some((choice, run)) = choice_and_run() else { return };
        let begin = || Course::measured(&choice, run, (true, 8));
        // Hours were spent on work of a second, with which what the test itself takes is nothing.
        choice.groups.add(Duration::from_secs(10_000), false);
        assert_eq!(begin().role, GROUPS, "nothing is known");
        choice.verdicts()[class(8)].in_groups = Pace { work: 1e6, seconds: 1e6 };
        for _ in 0..2 {
            let trying = begin();
            assert_eq!(trying.role, TRIES);
            assert!(trying.straight().is_some());
            assert_eq!(begin().role, GROUPS);
            drop(trying);
            // Not before long.
            assert_eq!(begin().role, GROUPS);
            let spent = choice.groups.spent();
            choice.groups.add(spent, false);
        }
        let mut trying = begin();
        choice.verdicts()[class(8)].straight = Pace { work: 1e6, seconds: 1.0 };
        assert!(trying.did(1));
        trying.look(8);
        assert_eq!((trying.role, begin().role), (STRAIGHT, STRAIGHT));
        // So it does with fewer lanes, without a try, and of more nothing is known.
        let others = [4, 9].map(|lanes| Course::measured(&choice, run, (true, lanes)).role);
        assert_eq!((others, choice.verdicts()[class(4)].is_known), ([STRAIGHT, GROUPS], false));
        // Who tries with other lanes in the end comes to no verdict.
        choice.verdicts()[class(8)] = Verdict { in_groups: Pace { work: 1e6, seconds: 1e6 }, ..Verdict::before(8) };
        let mut trying = begin();
        assert!(trying.did(1));
        trying.look(16);
        assert_eq!((trying.role, choice.verdicts()[class(8)].is_tried), (GROUPS, false));
    }

    #[test]
    fn lanes_that_are_half_done_when_code_comes_are_not_measured() {
        let Some((choice, run)) = choice_and_run() else { return };
        let mut course = Course::measured(&choice, run, (false, 4));
        course.changed(4);
        let mut visits = |work| {
            if course.did(work) {
                course.look(4);
            }
            choice.verdicts()[class(4)].in_groups.work
        };
        assert_eq!([visits(1), visits(2), visits(1)], [0.0; 3]);
        assert!((0..100).map(|_| visits(4)).any(|work| work > 0.0));
    }

    #[test]
    fn a_try_goes_on_with_whole_lanes_where_half_done_ones_say_nothing() {
        let Some((choice, run)) = choice_and_run() else { return };
        choice.groups.add(Duration::from_secs(10_000), false);
        choice.verdicts()[class(8)].in_groups = Pace { work: 1e6, seconds: 1e6 };
        let mut course = Course::measured(&choice, run, (true, 8));
        assert_eq!((course.role, course.wants_whole()), (TRIES, false));
        for _ in 0..MOST_VAIN {
            course.was_vain(Duration::ZERO);
            assert_eq!((course.role, course.wants_whole()), (TRIES, true));
        }
        course.was_vain(Duration::ZERO);
        assert_eq!((course.role, course.wants_whole()), (GROUPS, false));
    }

    #[test]
    fn what_was_measured_long_ago_is_forgotten() {
        let mut pace = Pace::default();
        pace.add(10, ENOUGH / 2);
        assert_eq!(pace.known(), None);
        (0..20).for_each(|_| pace.add(10, MEMORY / 2));
        assert!((pace.known().unwrap() - 0.025).abs() < 1e-3);
        (0..20).for_each(|_| pace.add(1, MEMORY / 2));
        assert!((pace.known().unwrap() - 0.25).abs() < 1e-2);
    }
}
