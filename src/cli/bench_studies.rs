//! What the arguments of `bench` ask for: which engines run, in which ways, in which cells.

use crate::bench::peer::{Against, PEERS, Places};
use crate::bench::{Question, Study, Way};
use crate::pipeline::PAPER;
use crate::program::{Codegen, Engine, Error, ErrorKind, device};
use crate::run::{Execution, Schedule};

use super::args::Switch;
use super::bench_args::BenchArgs;

/// Draws of each chain where lanes are counted and not time, so that numbers of chains compare.
const DRAWS_COUNTED: usize = 10;
/// Leapfrog steps of the figure by them.
const LEAF_STEPS: [usize; 5] = [1, 2, 4, 8, 16];

/// Each once, where it stands first.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

fn refused<T>(message: &str) -> Result<T, Error> {
    Err(Error::new(ErrorKind::Option, message))
}

/// The studies of a comparison.
pub(super) fn studies(args: &BenchArgs) -> Result<Vec<Study>, Error> {
    let devices: Vec<&'static str> =
        args.device.iter().map(|name| Ok(device(name)?.name())).collect::<Result<_, Error>>()?;
    let against = distinct(args.against.iter().map(|text| Against::parse(text)).collect::<Result<Vec<_>, _>>()?);
    let (question, engines) = match (args.figures.is_some(), args.ablate, &devices[..]) {
        (true, _, [one]) => return figures(args, one, against),
        (true, _, _) => return refused("--figures is of one --device"),
        (false, true, [one]) => (Question::Ablation, ablations(one)),
        (false, true, _) => return refused("--ablate is of one --device"),
        (false, false, _) => (Question::Chains, asked_for(args, devices).all()),
    };
    if engines.is_empty() {
        return refused("--codegen: generated code is fused and has its own --exec, so that this leaves no engine");
    }
    let threads = if args.threads.is_empty() { vec![1] } else { distinct(args.threads.iter().copied()) };
    let chains = distinct(args.chains.iter().copied());
    let (repetitions, draws) = (args.repetitions, args.draws);
    Ok(vec![Study { question, engines, against, chains, threads, repetitions, draws }])
}

/// The figures of the paper.
fn figures(args: &BenchArgs, device: &'static str, against: Vec<Against>) -> Result<Vec<Study>, Error> {
    let against = if args.against.is_empty() { installed(args)? } else { against };
    let chains = distinct(args.chains.iter().copied());
    let most = chains.iter().copied().max().unwrap_or(1);
    let all_threads = if args.threads.is_empty() { up_to_the_cores() } else { distinct(args.threads.iter().copied()) };
    let threads = all_threads[..1].to_vec();
    let (repetitions, draws) = (args.repetitions, args.draws);
    let everything = Ways {
        engines: vec![Engine::Pc, Engine::Local, Engine::Scalar],
        devices: vec![device],
        fusions: vec![true, false],
        codegens: vec![Codegen::Off, Codegen::Cc, Codegen::Auto],
        schedules: vec![Schedule::default()],
        executions: vec![Execution::Auto],
        leaf_steps: vec![1],
    };
    let fused = Ways { fusions: vec![true], codegens: vec![Codegen::Off, Codegen::Cc], ..everything.clone() };
    let by_leaf_steps = Ways { leaf_steps: LEAF_STEPS.to_vec(), ..fused.clone() };
    let first = Study {
        question: Question::Chains,
        engines: everything.all(),
        against: against.clone(),
        chains: chains.clone(),
        threads: threads.clone(),
        repetitions,
        draws,
    };
    let of_most = Study { against: Vec::new(), chains: vec![most], ..first.clone() };
    let utilization = Study {
        question: Question::Utilization,
        engines: policies(device),
        chains,
        repetitions: 1,
        draws: Some(draws.unwrap_or(DRAWS_COUNTED)),
        ..of_most.clone()
    };
    let ablation = Study { question: Question::Ablation, engines: ablations(device), ..of_most.clone() };
    let by_threads =
        Study { question: Question::Threads, engines: fused.all(), against, threads: all_threads, ..of_most.clone() };
    let leaves = Study { question: Question::LeafSteps, engines: by_leaf_steps.all(), ..of_most };
    Ok(vec![first, utilization, ablation, by_threads, leaves])
}

/// All peers that are there.
fn installed(args: &BenchArgs) -> Result<Vec<Against>, Error> {
    let places = Places::find(args.peers.as_deref());
    PEERS.iter().filter(|peer| places.command(peer).is_ok()).map(|peer| Against::parse(peer.name)).collect()
}

/// 1, 2, 4 and so on, and all cores.
fn up_to_the_cores() -> Vec<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let powers = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < cores);
    powers.chain([cores]).collect()
}

/// Each policy of `pc`, and `local`, with the whole batch computed under a mask; and `pc` as it runs otherwise.
fn policies(device: &'static str) -> Vec<Way> {
    let masked = |engine| Way { execution: Execution::Mask, ..Way::of(engine, device) };
    let half = Schedule::CostAware { theta: 0.5 };
    let policies = [Schedule::default(), half, Schedule::MostLanes, Schedule::Earliest];
    let masks = policies.into_iter().map(|schedule| Way { schedule, ..masked(Engine::Pc) });
    std::iter::once(Way::of(Engine::Pc, device)).chain(masks).chain([masked(Engine::Local)]).collect()
}

/// The default engine with everything on, without each of the paper's optimisations, and without all of them.
fn ablations(device: &'static str) -> Vec<Way> {
    let all = Way::of(Engine::Pc, device);
    let each = PAPER.iter().map(|name| Way { without: std::slice::from_ref(name), ..all });
    std::iter::once(all).chain(each).chain([Way { without: PAPER, ..all }]).collect()
}

/// Lists of what engines may be, of which every combination runs that makes sense.
#[derive(Clone, Debug)]
struct Ways {
    engines: Vec<Engine>,
    devices: Vec<&'static str>,
    fusions: Vec<bool>,
    codegens: Vec<Codegen>,
    schedules: Vec<Schedule>,
    executions: Vec<Execution>,
    leaf_steps: Vec<usize>,
}

fn asked_for(args: &BenchArgs, devices: Vec<&'static str>) -> Ways {
    Ways {
        engines: args.engine.iter().map(|name| (*name).into()).collect(),
        devices,
        fusions: args.fusion.iter().map(|f| *f == Switch::On).collect(),
        codegens: args.codegen.iter().map(|name| (*name).into()).collect(),
        schedules: args.schedule.clone(),
        executions: args.exec.iter().map(|name| (*name).into()).collect(),
        leaf_steps: args.leaf_steps.clone(),
    }
}

impl Ways {
    fn all(&self) -> Vec<Way> {
        let mut ways = Vec::new();
        for &engine in &self.engines {
            for &device in &self.devices {
                let plain = Way::of(engine, device);
                let kinds = match engine {
                    Engine::Scalar => self.scalar(plain),
                    Engine::Pc | Engine::Local => self.batching(plain),
                };
                for leaf_steps in &self.leaf_steps {
                    ways.extend(kinds.iter().map(|way| Way { leaf_steps: *leaf_steps, ..*way }));
                }
            }
        }
        distinct(ways)
    }

    /// The interpreter has nothing to fuse, nothing waits, and it runs on no device; with `cc` it is straight code.
    fn scalar(&self, plain: Way) -> Vec<Way> {
        let plain = Way { device: self.devices[0], ..plain };
        let way = |codegen: &Codegen| match codegen {
            Codegen::Cc => Way { codegen: Codegen::Cc, ..plain },
            Codegen::Off | Codegen::Auto => plain,
        };
        self.codegens.iter().map(way).collect()
    }

    /// With and without fusion, by each policy, and with fusion also as generated code, which chooses how lanes run by itself.
    fn batching(&self, plain: Way) -> Vec<Way> {
        let mut ways = Vec::new();
        for &codegen in &self.codegens {
            for &fusion in &self.fusions {
                for &execution in &self.executions {
                    let kernels_alone = !fusion || execution != Execution::Auto;
                    if codegen != Codegen::Off && kernels_alone {
                        continue;
                    }
                    // Local batching goes through a program in its order.
                    let schedules = if plain.engine == Engine::Pc { &self.schedules[..] } else { &[plain.schedule] };
                    ways.extend(schedules.iter().map(|s| Way { codegen, fusion, execution, schedule: *s, ..plain }));
                }
            }
        }
        ways
    }
}
