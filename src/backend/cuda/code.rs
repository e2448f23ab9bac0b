//! The text of a machine, and what the host must know of it.

use std::collections::HashMap;

use super::device::Scope;
use super::meetings::Meetings;
use super::threads::{Threads, pile_numbers};
use crate::backend::generator::{self, MachineSegment, Ports, RECORD_HEAD, Site, Storage, TrapMessage};
use crate::base::{Id as _, IdVec};
use crate::parts::StreamId;
use crate::plan::{ConstantId, Plan, StackId, cost};
use crate::prim::BLOCK;
use crate::run::{Costs, Loc};
use crate::types::{DType, Precision, Type};
use crate::unit::{self, BlockId};

/// The name of the function.
pub(super) const FUNCTION: &str = "ab_machine";

/// Columns of a tile: a block has no more threads.
const MOST_COLUMNS: usize = 256;

/// What every text has.
const RUNTIME: [&str; 3] =
    [include_str!("rt/machine.cuh"), include_str!("rt/matrices.cuh"), include_str!("rt/meetings.cuh")];

/// Return addresses in the report of a trap: `AB_ADDRESSES`.
const ADDRESSES: usize = 16;

/// The code of a program, for warps of so many threads.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) text: String,
    /// The shared values and literals that it is called with, in this order.
    pub(super) constants: Vec<ConstantId>,
    /// By site what a trap is, and the message with values that it tells, if it does.
    pub(super) sites: Vec<(Site, Option<TrapMessage>)>,
    /// What is printed.
    pub(super) prints: Vec<TrapMessage>,
    /// Fields of each stream.
    pub(super) streams: IdVec<StreamId, Vec<Type>>,
    /// How many piles are tapes, which are the first ones.
    pub(super) tapes: usize,
    /// Bytes of a level of each pile in one lane.
    pub(super) piles: Vec<usize>,
    /// Words of a thread for large arrays.
    pub(super) scratch: usize,
    /// Bytes of the lane buffers of a warp.
    pub(super) arena: usize,
    pub(super) segment: MachineSegment,
    /// Whether lanes meet.
    pub(super) meets: bool,
    /// Of the blocks that parts are, those that they are parts of, and of these the first where lanes meet.
    pub(super) origins: HashMap<usize, usize>,
    pub(super) meeting_of: HashMap<usize, usize>,
    /// By block where it stands.
    pub(super) blocks: Vec<Loc>,
    pub(super) warp: usize,
    pub(super) precision: Precision,
}

/// Blocks that have no text, with the reason.
pub(super) type Refused = Vec<(BlockId, String)>;

impl Code {
    /// The code of the units of a stack program in which lanes meet, and of which this plan was made.
    ///
    /// # Errors
    /// What there is no text for.
    pub(super) fn of(meetings: &Meetings, plan: &Plan, precision: Precision, warp: usize) -> Result<Self, Refused> {
        let program = &meetings.program;
        let frame = Threads { precision, warp };
        let storage = Storage::of(&plan.body, &plan.globals);
        let vars = |ports: &[unit::Port]| ports.iter().map(|port| port.var).collect();
        let ports = Ports {
            inputs: vars(&program.inputs),
            outputs: vars(&program.outputs),
            entry: program.entry,
            meetings: meetings.at.clone(),
            continued: meetings.continued.clone(),
        };
        let mut function = String::new();
        let body = &program.body;
        let made = generator::machine(&frame, (body, &storage), &ports, FUNCTION, &mut function)?;
        let segment = made.machine.expect("it is a machine");
        let region = made.region;
        let (_, arena) = frame.arena(region.slots.iter().copied(), storage.slots());
        let of_type = |ty: &Type| frame.bytes(ty.dtype, ty.elements());
        let tapes = region.tapes.iter().map(|tape| of_type(&program.globals.tapes[*tape].ty));
        let of_stack = |stack: &StackId| of_type(&plan.body.vars[plan.body.stacks[*stack]].ty);
        let stacks = made.stacks.iter().map(of_stack);
        let piles: Vec<usize> = tapes.chain(stacks).chain([size_of::<u32>()]).collect();
        let telling: HashMap<usize, usize> = segment.telling.iter().copied().collect();
        let message = |site: usize| telling.get(&site).map(|number| made.messages[*number].clone());
        let sites: Vec<_> = region.sites.into_iter().enumerate().map(|(at, site)| (site, message(at))).collect();
        let blocks = body.blocks.len();
        let mut text = format!("#define AB_BLOCK {BLOCK}\n");
        for (name, value) in [
            ("TOLD", segment.most_told.max(1)),
            ("SCRATCH", region.scratch),
            ("NOTES", segment.notes.max(1)),
            ("TRAP", blocks),
            ("DONE", blocks + 1),
            ("TILES", segment.tiles),
            ("NUMBERS", segment.numbers),
        ] {
            text += &format!("#define AB_{name} {value}\n");
        }
        if !meetings.at.is_empty() {
            text += "#define AB_MEETS\n";
        }
        text += &pile_numbers(region.tapes.len(), made.stacks.len());
        RUNTIME.iter().for_each(|part| text += part);
        text += &table(
            "uint16_t",
            "ab_sites",
            sites.iter().map(|(site, message)| {
                let told = message.as_ref().map_or(0, |message| words(&message.args));
                (told * 2 + usize::from(site.kind.is_caught())) as u64
            }),
        );
        text += &table("uint32_t", "ab_weights", weights(meetings, plan));
        text += &function;
        Ok(Self {
            text,
            constants: region.constants,
            sites,
            prints: segment.prints.clone(),
            streams: program
                .globals
                .streams
                .values()
                .map(|s| s.fields.iter().map(|(_, ty)| ty.clone()).collect())
                .collect(),
            tapes: region.tapes.len(),
            piles,
            scratch: region.scratch,
            arena,
            segment,
            meets: !meetings.at.is_empty(),
            origins: meetings.origins.iter().map(|(part, whole)| (part.index(), whole.index())).collect(),
            meeting_of: meetings.firsts(),
            blocks: body.blocks.values().map(|block| block.loc.clone()).collect(),
            warp,
            precision,
        })
    }

    /// The scopes that it can have: the first one serves any run, the others those that it suits better.
    pub(super) fn scopes(&self) -> &'static [Scope] {
        if self.meets { &[Scope::Block] } else { &[Scope::Warp, Scope::Block] }
    }

    /// Whether a block has room for what its threads share where lanes meet: counts of units, which stand beside what is staged,
    /// and tiles of more than one column.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.len() <= 700 && self.tiles(99 << 10).0 >= 2
    }

    /// Bytes of the numbers of lanes that meet, in a block of so many threads.
    pub(super) fn met_bytes(&self, threads: usize) -> usize {
        self.segment.numbers * threads * element_bytes(DType::Real, self.precision)
    }

    /// Columns of the tiles where lanes meet, and the bytes of all tiles, where a block has so many bytes of shared memory.
    pub(super) fn tiles(&self, shared: usize) -> (usize, usize) {
        let column = self.segment.tiles * BLOCK * element_bytes(DType::Real, self.precision);
        // Counts of each unit, and what is staged of products.
        let taken = 28 * (self.blocks.len() + 3) + (28 << 10);
        let width = shared.saturating_sub(taken).checked_div(column).unwrap_or(MOST_COLUMNS).clamp(1, MOST_COLUMNS);
        (width, width * column)
    }

    /// Most words of records that a thread writes between two looks at the room.
    pub(super) fn most_words(&self) -> usize {
        self.segment.most_words.max(RECORD_HEAD + 2 + ADDRESSES + self.segment.most_told)
    }
}

/// Words of values of these types.
pub(super) fn words(types: &[Type]) -> usize {
    types.iter().map(Type::elements).sum()
}

/// By block, and then for the two units of the machine, the weight of its unit, with the highest bit where it is heavy, and
/// the next one where lanes meet.
fn weights(meetings: &Meetings, plan: &Plan) -> impl Iterator<Item = u64> {
    let program = &meetings.program;
    let heavy = cost::heavy_weight(&plan.body.units, &Costs::default());
    let mut weights = vec![1; program.body.blocks.len() + 2];
    for unit in plan.body.units.values() {
        let weight = unit.cost.weight.clamp(1, (1 << 30) - 1);
        let block = unit.blocks[0].index();
        let meets = meetings.at.contains_key(&unit::BlockId::new(block));
        let bits = u64::from(unit.cost.weight >= heavy) << 31 | u64::from(meets) << 30;
        weights[block] = weight | bits;
    }
    weights.into_iter()
}

fn table(ty: &str, name: &str, elements: impl Iterator<Item = u64>) -> String {
    let elements: Vec<String> = elements.chain([0]).map(|element| format!("{element}u")).collect();
    format!("AB_TABLE {ty} {name}[] = {{{}}};\n", elements.join(", "))
}

/// The type of an element in memory on the device, by its size.
pub(super) fn element_bytes(dtype: DType, precision: Precision) -> usize {
    match (dtype, precision) {
        (DType::Bool, _) => 1,
        (DType::Real, Precision::F32) => 4,
        (DType::Int | DType::Real, _) => 8,
    }
}
