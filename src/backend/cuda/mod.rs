//! The CUDA back end: a thread is a lane, a warp a machine of its own with its scheduler, and the host only hands lanes out
//! and takes records. `cuda-host` runs the same text on the CPU.

mod code;
mod device;
mod driver;
mod emulated;
mod host;
mod meetings;
mod nvrtc;
mod records;
mod run;
mod shared;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::cpu::MACHINE;
use crate::backend::{Backend, BackendError, Executable, How, Units};
use crate::lower::to_plan::{Making, units_to_plan};
use crate::plan::{Plan, TargetMachine};
use crate::run::{Outcome, RunInputs, Settings, Sink};
use crate::types::Precision;
use crate::unit;
use code::Code;
use device::{Device, Scope};
use meetings::Meetings;

pub use driver::{Gpu, NoGpu, gpus};
pub use nvrtc::MachineCode;

/// Units are numbers of 16 bits for the scheduler.
const MOST_UNITS: usize = 0xff00;

/// Threads of a warp.
const WARP: usize = 32;

/// The host, with the text of the GPU: as one device, or as several.
#[derive(Clone, Copy, Debug)]
pub struct CudaHost {
    devices: usize,
}

/// The names of the host as so many devices.
const HOSTS: [&str; 4] = ["cuda-host", "cuda-host:2", "cuda-host:3", "cuda-host:4"];

impl CudaHost {
    /// The host as one device.
    pub fn one() -> Self {
        Self { devices: 1 }
    }

    /// The host of this name: `cuda-host:2` is as two devices.
    pub fn named(name: &str) -> Option<Self> {
        Some(Self { devices: HOSTS.iter().position(|known| *known == name)? + 1 })
    }
}

impl Backend for CudaHost {
    fn name(&self) -> &'static str {
        HOSTS[self.devices - 1]
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        Loaded::made(code_of(program, how, 1)?, (0..self.devices).map(|_| On::Host))
    }
}

/// A kind of GPU that need not be there: what is compiled for it is kept, and nothing runs.
#[derive(Clone, Debug)]
pub struct CudaCode {
    /// Its name for NVRTC, such as `sm_90`.
    pub arch: String,
}

impl Backend for CudaCode {
    fn name(&self) -> &'static str {
        "cuda-code"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        let (plan, code) = code_of(program, how, WARP)?;
        let mut bytes = 0;
        for (number, scope) in code.scopes().iter().enumerate() {
            match nvrtc::cubin(&code, &self.arch, *scope) {
                Ok(cubin) => bytes += cubin.code.len(),
                // A run does without it.
                Err(_) if number > 0 => {}
                Err(error) => return Err(error.into()),
            }
        }
        let told = format!("{bytes} bytes of code for {}, {}", self.arch, nvrtc::kept_in());
        Ok(Arc::new(CompiledOnly { plan, told }))
    }
}

/// What was compiled for a GPU that is not there.
#[derive(Debug)]
struct CompiledOnly {
    plan: Arc<Plan>,
    told: String,
}

impl Executable for CompiledOnly {
    fn run(&self, _: &RunInputs, _: &Settings, _: &dyn Sink) -> Result<Outcome, BackendError> {
        Err(BackendError::Compiled(format!("`{}`: {}", self.plan.name, self.told)))
    }
}

/// Threads of the host as those of a GPU: for tests.
#[derive(Clone, Copy, Debug)]
pub struct CudaThreads;

impl Backend for CudaThreads {
    fn name(&self) -> &'static str {
        "cuda-threads"
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        Loaded::made(code_of(program, how, WARP)?, [On::Threads])
    }
}

/// One GPU or several.
#[derive(Clone, Debug)]
pub struct Cuda {
    /// Their numbers; where none is named all that are new enough.
    numbers: Vec<usize>,
    name: &'static str,
}

impl Cuda {
    /// The first GPU.
    pub fn first() -> Self {
        Self { numbers: vec![0], name: "cuda" }
    }

    /// The GPUs of this name: `cuda`, or `cuda:0`, is the first one, `cuda:0,2` are two, and `cuda:all` all that there are.
    pub fn named(name: &str) -> Option<Self> {
        let list = match name.strip_prefix("cuda")? {
            "" => return Some(Self::first()),
            ":all" => return Some(Self { numbers: Vec::new(), name: "cuda:all" }),
            list => list.strip_prefix(':')?,
        };
        let number = |text: &str| text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse::<u8>().ok())?;
        let numbers = list.split(',').map(|text| number(text).map(usize::from)).collect::<Option<Vec<_>>>()?;
        let different: BTreeSet<usize> = numbers.iter().copied().collect();
        if different.len() < numbers.len() {
            return None;
        }
        if numbers == [0] {
            return Some(Self::first());
        }
        let name = kept(format!("cuda:{}", numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",")));
        Some(Self { numbers, name })
    }
}

/// A name of GPUs for as long as the process lives. Each is kept once, however often it is asked for.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(&*name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        self.name
    }
    fn machine(&self) -> TargetMachine {
        MACHINE
    }
    fn compile(&self, program: Units, how: &How) -> Result<Arc<dyn Executable>, BackendError> {
        let made = code_of(program, how, WARP)?;
        let fails = |error: NoGpu| BackendError::Device(error.to_string());
        let gpus: Vec<Gpu> = match &self.numbers[..] {
            [] => {
                let all = gpus().map_err(fails)?.len();
                let usable: Vec<Gpu> = (0..all).filter_map(|number| Gpu::numbered(number).ok()).collect();
                // Where there is none it is told what is wrong with the first one.
                if usable.is_empty() { vec![Gpu::numbered(0).map_err(fails)?] } else { usable }
            }
            numbers => numbers.iter().map(|n| Gpu::numbered(*n)).collect::<Result<_, _>>().map_err(fails)?,
        };
        Loaded::made(made, gpus.into_iter().map(On::Gpu))
    }
}

/// The text of a program for a GPU.
///
/// # Errors
/// [`BackendError::Unsupported`] where it does what no GPU does yet.
pub fn text(program: Units, precision: Precision) -> Result<String, BackendError> {
    let how = How { precision, ..How::default() };
    Ok(code_of(program, &how, WARP)?.1.text)
}

/// What NVRTC makes of a program for a kind of GPU (`sm_90`): the code for warps and that for blocks; of a program whose
/// lanes meet there is that for blocks alone.
///
/// # Errors
/// [`BackendError`].
pub fn report(program: Units, precision: Precision, arch: &str) -> Result<Vec<MachineCode>, BackendError> {
    let how = How { precision, ..How::default() };
    let code = code_of(program, &how, WARP)?.1;
    let made = |scope: &Scope| -> Result<MachineCode, BackendError> {
        let cubin = nvrtc::made(&code.text, &nvrtc::options(arch, &code, *scope)?)?;
        let unknown = || BackendError::Codegen(format!("the log of NVRTC says nothing of registers: {}", cubin.log));
        MachineCode::of(&cubin).ok_or_else(unknown)
    };
    code.scopes().iter().map(made).collect()
}

impl From<nvrtc::NvrtcError> for BackendError {
    fn from(error: nvrtc::NvrtcError) -> Self {
        BackendError::Codegen(error.to_string())
    }
}

/// The code of a program, for warps of so many threads.
fn code_of(program: Units, how: &How, warp: usize) -> Result<(Arc<Plan>, Code), BackendError> {
    let Units::Machine(units, plan) = program else {
        return Err(BackendError::Unsupported(
            "the engine `local` does not run on a GPU: use `--engine pc`, or `--device cpu`".to_owned(),
        ));
    };
    if !plan.cached_tops {
        return Err(BackendError::Unsupported(
            "a GPU keeps the tops of stacks in registers: leave the pass `tops` on, or use `--device cpu`".to_owned(),
        ));
    }
    // Where blocks have no room for all that goes row by row, lanes meet for products alone, or not at all.
    for by_rows in [true, false] {
        let Some(meetings) = Meetings::of(&units, by_rows) else { break };
        debug_assert_eq!(unit::verify(&meetings.program), Vec::new(), "blocks are parted");
        // Rows that lanes go through together are no business of the plan.
        let making = Making { machine: plan.body.machine, tile_rows: false };
        let plan = Arc::new(units_to_plan(&meetings.program, making));
        let made = Code::of(&meetings, &plan, how.precision, warp).ok();
        if let Some(code) = made.filter(Code::has_room) {
            return Ok((plan, code));
        }
    }
    if units.body.blocks.len() >= MOST_UNITS {
        let message = format!("a program of {MOST_UNITS} blocks or more does not run on a GPU: use `--device cpu`");
        return Err(BackendError::Unsupported(message));
    }
    let code = Code::of(&Meetings::none(&units), &plan, how.precision, warp).map_err(|refused| {
        let (block, why) = &refused[0];
        let loc = &units.body.blocks[*block].loc;
        BackendError::Unsupported(format!("this cannot run on a GPU yet: {why} {}; use `--device cpu`", loc.told()))
    })?;
    Ok((plan, code))
}

/// A program, compiled for devices.
#[derive(Debug)]
struct Loaded {
    plan: Arc<Plan>,
    code: Code,
    /// Where it runs: lanes are divided among these.
    places: Vec<Place>,
}

/// What a program runs on.
#[derive(Debug)]
struct Place {
    on: On,
    /// Those with the code for a scope that a run has asked for.
    devices: Mutex<Vec<(Scope, Arc<dyn Device>)>>,
}

#[derive(Debug)]
enum On {
    Gpu(Gpu),
    Host,
    Threads,
    /// The host, as a device that fails.
    #[cfg(test)]
    Failing(Arc<tests::Faults>),
}

impl Loaded {
    /// A program, with devices that serve any run.
    fn made(
        (plan, code): (Arc<Plan>, Code),
        on: impl IntoIterator<Item = On>,
    ) -> Result<Arc<dyn Executable>, BackendError> {
        let places = on.into_iter().map(|on| Place { on, devices: Mutex::default() }).collect();
        let loaded = Self { plan, code, places };
        for place in &loaded.places {
            place.device(&loaded.code, loaded.code.scopes()[0])?;
        }
        Ok(Arc::new(loaded))
    }

    /// The devices for a run of so many lanes.
    fn devices_for(&self, lanes: usize) -> Result<Vec<Arc<dyn Device>>, BackendError> {
        let each = lanes.div_ceil(self.places.len());
        self.places.iter().map(|place| place.device_for(&self.code, each)).collect()
    }
}

impl Place {
    /// The device with the code for a scope, which is compiled when it is asked for.
    fn device(&self, code: &Code, scope: Scope) -> Result<Arc<dyn Device>, BackendError> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, device)) = devices.iter().find(|(known, _)| *known == scope) {
            return Ok(Arc::clone(device));
        }
        let host = || host::Host::new(&code.text, code::FUNCTION, code.precision);
        let device: Arc<dyn Device> = match &self.on {
            On::Host => Arc::new(host()?),
            On::Threads => Arc::new(emulated::Emulated::new(code, scope)?),
            #[cfg(test)]
            On::Failing(faults) => Arc::new(tests::Failing::new(host()?, Arc::clone(faults))),
            On::Gpu(gpu) => {
                let arch = gpu.arch();
                let cubin = nvrtc::cubin(code, &arch, scope)?;
                let (_, shared) = code.tiles(nvrtc::shared_memory(&arch));
                let loaded = driver::Loaded::new(gpu.clone(), &cubin.code, (code::FUNCTION, shared));
                Arc::new(loaded.map_err(|error| BackendError::Device(error.to_string()))?)
            }
        };
        devices.push((scope, Arc::clone(&device)));
        Ok(device)
    }

    /// The device for a run of so many lanes.
    fn device_for(&self, code: &Code, lanes: usize) -> Result<Arc<dyn Device>, BackendError> {
        let one_by_one = self.device(code, code.scopes()[0])?;
        if code.meets {
            return Ok(one_by_one);
        }
        let threads = one_by_one.threads().map_err(|error| BackendError::Device(error.to_string()))?;
        match self.on {
            // A large program may have none for blocks: their memory holds a count for each unit.
            On::Gpu(_) | On::Threads if lanes >= threads => Ok(self.device(code, Scope::Block).unwrap_or(one_by_one)),
            _ => Ok(one_by_one),
        }
    }
}

impl Executable for Loaded {
    fn prepare(&self, lanes: usize, _: &Settings) {
        // What cannot be had is told by the run.
        let _ = self.devices_for(lanes);
    }
    fn run(&self, inputs: &RunInputs, settings: &Settings, sink: &dyn Sink) -> Result<Outcome, BackendError> {
        let asked = [
            (settings.get_check_nan(), "`--check nan` looks at every step"),
            (settings.get_profile(), "`--profile` times every step"),
            (settings.get_trace().is_some(), "`--trace` notes every superstep"),
        ];
        if let Some((_, what)) = asked.into_iter().find(|(asked, _)| *asked) {
            return Err(BackendError::Unsupported(format!("{what}, which a GPU does not do: use `--device cpu`")));
        }
        let devices = self.devices_for(inputs.lanes.len())?;
        let program = (&*self.plan, &self.code);
        let outcome = match &devices[..] {
            // Of no lanes one device has no work.
            [device, ..] if devices.len() == 1 || inputs.lanes.is_empty() => {
                let mut room = run::Room::default();
                run::run(program, &**device, inputs, (settings, &|| settings.is_stopped()), (sink, &mut room))
            }
            devices => shared::run_on_all(program, devices, inputs, settings, sink),
        };
        outcome.map_err(|error| BackendError::Device(error.to_string()))
    }
}
