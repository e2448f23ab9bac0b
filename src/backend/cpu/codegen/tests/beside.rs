//! Code that is made beside runs: what becomes of it with compilers of every kind, and what is left behind.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::compiler;
use super::compiling::Folder;
use crate::backend::cpu::codegen::beside::Patience;
use crate::backend::cpu::codegen::compiler::Compiler;
use crate::backend::cpu::codegen::{Beside, Generated, RunClock};
use crate::backend::{Form, Units};
use crate::program::{Inputs, Options, Program};
use crate::run::CodeStats;
use crate::types::Precision;

const HOUR: Duration = Duration::from_secs(3600);

fn units() -> Units {
    let program = Program::compile("pub fn f(x: real) -> real { if x < 1.0 { x + 1.0 } else { f(x / 2.0) } }").unwrap();
    let bound = program.function("f").unwrap().bind(&Inputs::new().lane("x", vec![1.0]), &Options::default()).unwrap();
    let compiled = bound.compiled();
    Units::Machine(Arc::clone(&compiled.units), Arc::clone(&compiled.plan))
}

/// With a compiler, for runs of which the first look finds everything due.
fn beside(compiler: Compiler) -> Beside {
    of_form(Form::Groups, compiler)
}

fn of_form(form: Form, compiler: Compiler) -> Beside {
    with_patience(form, compiler, HOUR)
}

/// The same, for which a process waits no longer at its end.
fn with_patience(form: Form, compiler: Compiler, end: Duration) -> Beside {
    let patience = Patience { disk: Duration::ZERO, compiler: 0.0, idle: 0.0, end };
    Beside::with((units(), form), Precision::F64, patience, Some(compiler))
}

/// Code that is there; none without a compiler.
pub(in crate::backend::cpu::codegen) fn compiled(form: Form) -> Option<Beside> {
    let beside = of_form(form, compiler()?);
    look(&beside);
    look(&beside);
    assert!(beside.native().is_some(), "{}", told(&beside));
    Some(beside)
}

fn told(beside: &Beside) -> CodeStats {
    beside.told(false, None)
}

/// Looks, and waits until what begins is over.
fn look(beside: &Beside) -> CodeStats {
    look_with(beside, Duration::from_secs(1))
}

/// The same of a run that has taken so long.
fn look_with(beside: &Beside, run: Duration) -> CodeStats {
    beside.passed(run, true);
    while matches!(told(beside), CodeStats::NotReady { .. }) {
        std::thread::sleep(Duration::from_millis(1));
    }
    told(beside)
}

/// A compiler that is a script, which first says its version.
fn script(folder: &Folder, text: &str) -> Compiler {
    let path = folder.path("compiler");
    fs::write(&path, format!("if [ \"$1\" = --version ]; then echo a script; exit; fi\n{text}\n")).unwrap();
    Compiler::new(format!("sh '{}'", path.display()).as_ref()).unwrap()
}

#[test]
fn nothing_begins_before_it_is_due() {
    let folder = Folder::new();
    let compiler = script(&folder, "exit 1");
    let patient = Beside::with((units(), Form::Groups), Precision::F64, Patience::default(), Some(compiler));
    patient.passed(Duration::from_millis(15), true);
    patient.passed(Duration::from_millis(3), false);
    assert!(matches!(told(&patient), CodeStats::NotWorth { estimate: None, .. }), "{}", told(&patient));
    // What was spent before counts.
    patient.add(Duration::from_millis(2), false);
    patient.passed(Duration::from_millis(15), true);
    while matches!(told(&patient), CodeStats::NotReady { .. }) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let CodeStats::NotWorth { estimate: Some(estimate), .. } = told(&patient) else { panic!("{}", told(&patient)) };
    patient.passed(estimate / 2, true);
    assert!(matches!(told(&patient), CodeStats::NotWorth { .. }), "{}", told(&patient));
    assert!(patient.may_come() && patient.native().is_none());
}

#[test]
fn many_runs_without_a_look_at_the_clock_are_as_one() {
    let folder = Folder::new();
    let beside = beside(script(&folder, "exit 1"));
    // The first run finds that it is due to look on disk, and a later one that it is due to compile.
    for _ in 0..20_000 {
        let told = RunClock::start(Generated::Beside(&beside), None, 1).stop(false);
        match told.expect("it says what became of it") {
            CodeStats::NotReady { .. } | CodeStats::NotWorth { .. } => std::thread::sleep(Duration::from_millis(1)),
            told => return assert!(matches!(&told, CodeStats::Failed(_)), "{told}"),
        }
    }
    panic!("no compiler was started: {}", told(&beside));
}

#[test]
fn what_is_compiled_comes_and_is_kept() {
    let folder = Folder::new();
    let Some(compiler) = compiler() else { return };
    let compiler = compiler.with_cache(Some(folder.path("cache")));
    for kept in [false, true] {
        let beside = beside(compiler.clone());
        let first = look(&beside);
        if !kept {
            assert!(matches!(first, CodeStats::NotWorth { estimate: Some(_), .. }), "{first}");
            look(&beside);
        }
        let came = told(&beside);
        assert!(matches!(came, CodeStats::Came { kept: k, keeps: true, .. } if k == kept), "{came}");
        assert!(beside.native().is_some());
        assert_eq!(beside.told(true, None), CodeStats::FromStart);
    }
}

#[test]
fn a_folder_that_is_none_keeps_nothing_and_a_run_is_told() {
    let folder = Folder::new();
    fs::write(folder.path("file"), "").unwrap();
    let Some(compiler) = compiler() else { return };
    let beside = beside(compiler.with_cache(Some(folder.path("file").join("below"))));
    look(&beside);
    let came = look(&beside).to_string();
    assert!(
        came.starts_with("compiled in") && came.contains("not kept, since the folder of AUTOBATCH_CACHE"),
        "{came}"
    );
}

#[test]
fn a_folder_that_others_can_write_to_is_refused_and_a_run_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let cache = folder.path("cache");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let beside = beside(script(&folder, "exit 1").with_cache(Some(cache)));
    let none = look(&beside).to_string();
    assert!(none.contains("other users can write to it"), "{none}");
    assert!(!beside.may_come());
}

#[test]
fn a_compiler_that_fails_is_told_of() {
    let folder = Folder::new();
    let beside = beside(script(&folder, "echo error: no such target >&2; exit 3"));
    look(&beside);
    let none = look(&beside).to_string();
    assert!(none.contains("a script failed with") && none.contains("no such target"), "{none}");
    assert!(!beside.may_come() && beside.native().is_none());
}

#[test]
fn what_runs_took_counts_for_the_next_process() {
    let folder = Folder::new();
    let compiler = script(&folder, "exit 1").with_cache(Some(folder.path("cache")));
    let next = || Beside::with((units(), Form::Groups), Precision::F64, Patience::default(), Some(compiler.clone()));
    let spent = |beside: &Beside| match look_with(beside, Duration::from_millis(16)) {
        CodeStats::NotWorth { spent, estimate: Some(estimate) } => (spent, estimate),
        told => panic!("{told}"),
    };
    let first = next();
    let (none, estimate) = spent(&first);
    assert_eq!(none, Duration::ZERO);
    first.add(estimate.mul_f64(0.6), false);
    drop(first);
    let second = next();
    let (before, _) = spent(&second);
    assert_eq!(before, estimate.mul_f64(0.6));
    second.add(estimate.mul_f64(0.6), false);
    drop(second);
    // By now the compiler pays, so it begins with the first look.
    let third = next();
    assert!(spent(&third).0 > estimate);
    let failed = look_with(&third, Duration::ZERO);
    assert!(matches!(failed, CodeStats::Failed(_)), "{failed}");
}

/// The only run of a process takes so long, with the compiler at work.
fn ends_after(beside: &Beside, run: Duration, stopped: bool) {
    look(beside);
    beside.passed(run, true);
    beside.add(run, stopped);
}

#[test]
fn a_compiler_that_pays_is_waited_for() {
    // Of the first process that runs a program, only a small part of its time.
    for (run, stopped, waits) in [(HOUR, false, true), (HOUR, true, false), (Duration::from_millis(10), false, false)] {
        let folder = Folder::new();
        let done = folder.path("done");
        let seconds = if waits { 0.1 } else { 100.0 };
        let compiler = script(&folder, &format!("sleep {seconds}; touch '{}'; exit 1", done.display()));
        ends_after(&beside(compiler), run, stopped);
        assert_eq!(done.is_file(), waits, "after {run:?}, stopped: {stopped}");
    }
    // Of one that ran before, as long as it takes.
    let folder = Folder::new();
    let (done, begun) = (folder.path("done"), folder.path("begun"));
    let text =
        format!("if [ ! -e '{0}' ]; then touch '{0}'; sleep 100; fi; touch '{1}'", begun.display(), done.display());
    let compiler = script(&folder, &text).with_cache(Some(folder.path("cache")));
    let first = beside(compiler.clone());
    ends_after(&first, Duration::from_millis(1), false);
    while !begun.is_file() {
        std::thread::yield_now();
    }
    drop(first);
    assert!(!done.is_file());
    ends_after(&beside(compiler), HOUR, false);
    assert!(done.is_file());
}

#[test]
fn what_runs_took_is_forgotten_where_the_compiler_did_not_end() {
    let folder = Folder::new();
    let compiler = script(&folder, "sleep 100").with_cache(Some(folder.path("cache")));
    let kept = || match look(&beside(compiler.clone())) {
        CodeStats::NotWorth { spent, estimate: Some(estimate) } => (spent, estimate),
        told => panic!("{told}"),
    };
    // It is waited for as long as it was estimated to take, in vain.
    let (_, estimate) = kept();
    ends_after(&with_patience(Form::Groups, compiler.clone(), estimate), Duration::from_millis(1), true);
    let (spent, estimate) = kept();
    assert_eq!(spent, Duration::from_millis(1));
    ends_after(&with_patience(Form::Groups, compiler.clone(), estimate), HOUR, false);
    assert_eq!(kept().0, Duration::ZERO);
    // It began at once, and is not waited for.
    ends_after(&beside(compiler.clone()), HOUR, true);
    assert_eq!(kept().0, HOUR);
    ends_after(&with_patience(Form::Groups, compiler.clone(), Duration::ZERO), HOUR, false);
    assert_eq!(kept().0, Duration::ZERO);
}

/// Whether a process runs: one that has ended may wait for its parent.
fn runs(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next())
        .is_some_and(|state| state != 'Z' && state != 'X')
}

#[test]
#[cfg(target_os = "linux")]
fn a_compiler_that_hangs_is_ended_with_what_it_has_started() {
    let folder = Folder::new();
    let started = folder.path("started");
    let text = format!("sleep 1000 & echo $! $$ $TMPDIR > {0}.new; mv {0}.new {0}; wait", started.display());
    let beside = beside(script(&folder, &text));
    look(&beside);
    beside.passed(Duration::from_secs(1), true);
    while !started.is_file() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let told_before = told(&beside);
    assert!(matches!(told_before, CodeStats::NotReady { .. }), "{told_before}");
    let said = fs::read_to_string(&started).unwrap();
    let [child, script, workspace] = said.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(runs(child) && runs(script) && PathBuf::from(workspace).is_dir());
    drop(beside);
    // The script was waited for; a signal to its child may be on its way.
    assert!(!runs(script) && !PathBuf::from(workspace).exists());
    while runs(child) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
