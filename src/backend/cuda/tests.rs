//! The host as a device that fails when it is told to: what a run does then.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::device::{Device, DeviceError, Grid, Memory, Run};
use super::host::Host;
use super::{Loaded, On, code_of};
use crate::backend::cpu::MACHINE;
use crate::backend::{Backend, BackendError, Executable, How, Units};
use crate::plan::TargetMachine;
use crate::program::{Codegen, Engine, Error, ErrorKind, Inputs, Options, Program, Results};
use crate::run::{NoMemory, NoSink, Record, Settings, Sink, StreamId, TrapKind};
use crate::types::Array;

/// What a device is to do wrong.
#[derive(Debug)]
pub(super) struct Faults {
    /// Calls of it so far.
    calls: AtomicUsize,
    /// Which of them was the first launch, once there was one.
    launch: OnceLock<usize>,
    /// The call that fails, with all that come after it.
    fails_at: usize,
    /// Bytes that it says it has.
    room: usize,
    /// Words of records after which lanes wait.
    records: usize,
}

impl Faults {
    fn none() -> Self {
        Self {
            calls: AtomicUsize::new(0),
            launch: OnceLock::new(),
            fails_at: usize::MAX,
            room: 1 << 28,
            records: 1 << 9,
        }
    }
    fn call(&self, what: &'static str) -> Result<(), DeviceError> {
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            call if call < self.fails_at => Ok(()),
            _ => Err(DeviceError::Failed { what, why: format!("no answer from call {} on", self.fails_at) }),
        }
    }
}

/// The host with faults.
#[derive(Debug)]
pub(super) struct Failing {
    host: Host,
    faults: Arc<Faults>,
}

impl Failing {
    pub(super) fn new(host: Host, faults: Arc<Faults>) -> Self {
        Self { host, faults }
    }
}

impl Device for Failing {
    fn name(&self) -> String {
        self.host.name()
    }
    fn threads(&self) -> Result<usize, DeviceError> {
        self.faults.call("threads")?;
        self.host.threads()
    }
    fn grid(&self, threads: usize, meets: bool) -> Grid {
        self.host.grid(threads, meets)
    }
    fn most_records(&self) -> usize {
        self.faults.records
    }
    fn room(&self) -> Result<usize, DeviceError> {
        self.faults.call("room")?;
        Ok(self.faults.room)
    }
    fn memory(&self, bytes: usize) -> Result<Box<dyn Memory>, DeviceError> {
        self.faults.call("memory")?;
        let faults = Arc::clone(&self.faults);
        Ok(Box::new(FailingMemory { memory: self.host.memory(bytes)?, faults }))
    }
    unsafe fn launch(&self, run: Run, grid: Grid, stops: &dyn Fn() -> bool) -> Result<(), DeviceError> {
        self.faults.launch.get_or_init(|| self.faults.calls.load(Ordering::Relaxed));
        self.faults.call("launch")?;
        // SAFETY: the caller answers for that.
        unsafe { self.host.launch(run, grid, stops) }
    }
}

struct FailingMemory {
    memory: Box<dyn Memory>,
    faults: Arc<Faults>,
}

impl Memory for FailingMemory {
    fn address(&self) -> u64 {
        self.memory.address()
    }
    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.faults.call("write")?;
        self.memory.write(at, bytes)
    }
    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.faults.call("read")?;
        self.memory.read(at, bytes)
    }
    fn read_words(&self, at: usize, words: &mut [u64]) -> Result<(), DeviceError> {
        self.faults.call("read words")?;
        self.memory.read_words(at, words)
    }
    fn fill(&mut self, byte: u8) -> Result<(), DeviceError> {
        self.faults.call("fill")?;
        self.memory.fill(byte)
    }
}

/// Devices with these faults.
#[derive(Debug)]
struct WithFaults(Vec<Arc<Faults>>);

impl Backend for WithFaults {
    fn name(&self) -> &'static str {
        "cuda-failing"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        Loaded::made(code_of(program, how, 1)?, self.0.iter().cloned().map(On::Failing))
    }
}

/// All that lanes say, in their order.
#[derive(Default)]
struct Said(Mutex<Vec<Vec<u64>>>);

impl Said {
    fn of(lanes: usize) -> Self {
        Self(Mutex::new(vec![Vec::new(); lanes]))
    }
}

impl Sink for Said {
    fn emit(&self, position: usize, stream: StreamId, record: &dyn Record) -> Result<(), NoMemory> {
        let words = &mut self.0.lock().unwrap()[position];
        words.push(stream.0.into());
        record.append_words(words);
        Ok(())
    }
    fn print(&self, position: usize, line: String) {
        self.0.lock().unwrap()[position].extend(line.bytes().map(u64::from));
    }
}

/// Records that fill the log, calls deeper than stacks are at first, random draws, traps, an attempt.
const PROGRAM: &str = "
    fn down(n: int) -> real {
        emit said(depth: n, at: random_normal());
        if n == 0 { random_uniform() } else { let below = down(n - 1); below + n % 7 }
    }
    pub fn main(n: int) -> real {
        assert(n != 5, \"{n} is five\");
        let mut i = 0;
        while i < n % 11 { emit walk(step: i); i += 1; }
        down(n) + i
    }";

const LANES: i64 = 120;

fn inputs() -> Inputs {
    Inputs::new().lane("n", (0..LANES).map(|lane| if lane % 40 == 39 { 90 } else { lane % 23 }).collect::<Vec<i64>>())
}

fn options(faults: &[&Arc<Faults>], settings: Settings) -> Options {
    let faults = faults.iter().map(|faults| Arc::clone(faults)).collect();
    let options = Options::default().engine(Engine::Pc).codegen(Codegen::Off).settings(settings);
    options.backend(Arc::new(WithFaults(faults)))
}

/// Runs the program; what came of it, and what was said. A program keeps what was compiled for devices of one name, so that
/// each run has a program of its own.
fn run(options: &Options) -> (Result<Results, Error>, Vec<Vec<u64>>) {
    let said = Said::of(LANES as usize);
    let program = Program::compile(PROGRAM).unwrap();
    let bound = program.function("main").unwrap().bind(&inputs(), options).unwrap();
    let results = bound.run(options, &said);
    (results, said.0.into_inner().unwrap())
}

/// What the interpreter gives.
fn wanted() -> (Results, Vec<Vec<u64>>) {
    let (results, said) = run(&Options::default().engine(Engine::Scalar).codegen(Codegen::Off));
    (results.unwrap(), said)
}

fn bits(results: &Results) -> Vec<u64> {
    results.outputs()["result"].as_real().unwrap().iter().map(|x| x.to_bits()).collect()
}

fn assert_same(found: &(Result<Results, Error>, Vec<Vec<u64>>), wanted: &(Results, Vec<Vec<u64>>)) {
    let results = found.0.as_ref().unwrap();
    assert_eq!(bits(results), bits(&wanted.0));
    assert_eq!(results.traps(), wanted.0.traps());
    assert_eq!(found.1, wanted.1);
}

#[test]
fn a_fault_in_any_call_ends_the_run_with_what_the_device_says() {
    let wanted = wanted();
    let good = Arc::new(Faults::none());
    let found = run(&options(&[&good], Settings::default().stats(true)));
    assert_same(&found, &wanted);
    let device = found.0.unwrap().stats().device.clone().unwrap();
    assert!(device.launches > 3, "the log is never full, or stacks do not grow: {device}");
    let calls = good.calls.load(Ordering::Relaxed);
    for fails_at in 0..calls {
        let faults = Arc::new(Faults { fails_at, ..Faults::none() });
        let (results, said) = run(&options(&[&faults], Settings::default().stats(true)));
        let error = match results {
            Err(error) => error,
            // When the log is full hangs on the threads of the host: this run had fewer calls.
            Ok(_) if faults.calls.load(Ordering::Relaxed) <= fails_at => continue,
            Ok(_) => panic!("a run goes on though call {fails_at} failed"),
        };
        assert_eq!(error.kind(), ErrorKind::Codegen, "{error}");
        assert!(error.to_string().contains(&format!("no answer from call {fails_at} on")), "{error}");
        for (said, all) in said.iter().zip(&wanted.1) {
            assert!(all.starts_with(said), "what was handed on before call {fails_at} failed is not what lanes say");
        }
    }
}

#[test]
fn a_device_with_little_memory_runs_fewer_lanes_at_a_time_or_says_so() {
    let wanted = wanted();
    let (mut refused, mut capped, mut whole) = (0, 0, 0);
    for room in (8..28).step_by(2).map(|bits| 1_usize << bits) {
        // What the device has, and what a run may have of it.
        for (room, limit) in [(room, usize::MAX), (1 << 28, room)] {
            let faults = Arc::new(Faults { room, ..Faults::none() });
            let settings = Settings::default().device_memory(limit);
            let (results, said) = run(&options(&[&faults], settings));
            let results = match results {
                Ok(results) => results,
                Err(error) => {
                    assert!(error.to_string().contains("--device-memory"), "{error}");
                    refused += 1;
                    continue;
                }
            };
            let lost = |position: usize| {
                results.traps().iter().any(|t| t.position == position && t.kind == TrapKind::MemoryLimit)
            };
            let (found, all) = (bits(&results), bits(&wanted.0));
            for lane in (0..LANES as usize).filter(|lane| !lost(*lane)) {
                assert_eq!((found[lane], &said[lane]), (all[lane], &wanted.1[lane]), "lane {lane}, room {room}");
            }
            if results.traps() == wanted.0.traps() { whole += 1 } else { capped += 1 }
        }
    }
    assert!(refused > 0 && capped > 0 && whole > 0, "{refused} refused, {capped} lost lanes, {whole} had room");
}

#[test]
fn several_devices_give_what_one_gives() {
    let wanted = wanted();
    let devices: Vec<Arc<Faults>> = (0..3).map(|_| Arc::new(Faults::none())).collect();
    let found = run(&options(&devices.iter().collect::<Vec<_>>(), Settings::default().stats(true)));
    assert_same(&found, &wanted);
    assert!(devices.iter().all(|faults| faults.launch.get().is_some()), "one of them did nothing");
    let device = found.0.unwrap().stats().device.clone().unwrap();
    assert!(device.name.starts_with("3 × "), "{device}");
}

#[test]
fn one_of_several_devices_that_fails_ends_the_run() {
    // Lanes that never end but where their device fails: the others are told to stop.
    let source = "pub fn main(n: int) -> int { let mut m = n; while m > 0 { m = m % 5 + 1; } m }";
    let run = |n: i64, devices: &[&Arc<Faults>]| {
        let options = options(devices, Settings::default());
        let program = Program::compile(source).unwrap();
        let inputs = Inputs::new().lane("n", Array::int([60], vec![n; 60]));
        program.function("main").unwrap().bind(&inputs, &options).unwrap().run(&options, &NoSink)
    };
    let good = [(); 2].map(|()| Arc::new(Faults::none()));
    run(0, &good.each_ref()).unwrap();
    let launch = *good[0].launch.get().unwrap();
    for fails_at in [1, launch / 2, launch] {
        let bad = Arc::new(Faults { fails_at, ..Faults::none() });
        let error = run(1, &[&Arc::new(Faults::none()), &bad]).unwrap_err();
        assert!(error.to_string().contains(&format!("no answer from call {fails_at} on")), "{error}");
    }
}
