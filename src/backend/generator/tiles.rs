//! What a group of steps that run tile by tile does row by row, as functions over a tile: what its steps hand on to one
//! another stays in registers. Matrix products, and what may trap but for places that all lanes share, stay steps.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use crate::backend::generator::functions::{self, Call, group_type, memory_type, prefix};
use crate::backend::generator::operations;
use crate::backend::generator::ssa::Fold;
use crate::plan::{Arg, Part, SlotId, Source, TileResult, Tiled, TiledStep};
use crate::prim::{Class, Movement, Prim, Reduction};
use crate::types::DType;

/// Steps of a group that follow one another and are one function.
#[derive(Clone, PartialEq, Debug)]
pub struct TileSegment {
    /// The steps of the group that it does.
    pub steps: Range<usize>,
    /// Name of the function.
    pub name: String,
    /// What it reads, in this order: of a step an operand, each by its number.
    pub reads: Vec<(usize, usize)>,
    /// The steps whose results it stores, in this order.
    pub stores: Vec<usize>,
    /// The indices among what it reads, each with the extent of the axis that they lie in: it serves where they do.
    pub indices: Vec<(usize, usize)>,
}

/// Groups of lanes that go through the rows of a tile together: their sums are in flight at the same time, and a row of
/// them is read in one go.
const ABREAST: usize = 8;

/// Steps of a function: of more the compiler of the text makes one long loop, which takes it as long as many short ones do
/// and more. What they read of each lane, and sum, stands on the stack, so many values of all groups abreast each.
const MOST_STEPS: usize = 128;

/// The functions of a group of steps, appended to `out`; their names begin with `prefix`.
pub(in crate::backend) fn tile_segments(group: &Tiled, prefix: &str, out: &mut String) -> Vec<TileSegment> {
    let made = ranges(group).into_iter();
    made.map(|steps| Writer::new(group, steps.clone()).function(format!("{prefix}{}", steps.start), out)).collect()
}

/// The steps of a group that become functions.
fn ranges(group: &Tiled) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut first = 0;
    while first < group.steps.len() {
        // Rows that are kept stand where they were made until the function is done.
        let is_free = |at: usize| {
            let mut kept = group.steps[first..at].iter().filter(|step| step.result == TileResult::Rows);
            kept.all(|step| target(step) != target(&group.steps[at]))
        };
        let all = first..group.steps.len().min(first + MOST_STEPS);
        let taken = all.take_while(|at| takes(group, *at) && is_free(*at)).count();
        // One step by itself is a kernel as well.
        if taken > 1 {
            ranges.push(first..first + taken);
        }
        first += taken.max(1);
    }
    ranges
}

/// Whether there are functions for a group, and they do all of it but what kernels are made for: matrix products, sums of
/// logarithms and twins.
pub(in crate::backend) fn all_in_tiles(group: &Tiled) -> bool {
    let has_kernel = |at: usize| {
        let class = group.steps[at].compute.prim.class();
        let is_log_sum = matches!(class, Class::Reduction(Reduction::SumLog | Reduction::SumLog1pExp));
        has_twin(group, at) || is_log_sum || matches!(class, Class::Contraction(_))
    };
    !ranges(group).is_empty() && (0..group.steps.len()).all(|at| takes(group, at) || has_kernel(at))
}

/// Whether a step can be part of a function.
fn takes(group: &Tiled, at: usize) -> bool {
    let (step, rows) = (&group.steps[at], group.rows);
    let c = &step.compute;
    if c.uniform || rows == 1 {
        return false;
    }
    match c.prim.class() {
        Class::Movement(Movement::Gather) => is_row(step, rows) && is_indexed(step, 0, 1),
        Class::Movement(Movement::ScatterAdd) => {
            step.result == TileResult::Total
                && c.ty.dtype == DType::Real
                && is_indexed(step, 0, 2)
                && is_of_rows(step, 1, rows)
        }
        _ if fold(step).is_some() => {
            step.result == TileResult::Total && (0..c.args.len()).all(|arg| is_of_rows(step, arg, rows))
        }
        _ => {
            let is_value = |arg: usize| step.parts[arg] == Part::Whole && c.args[arg].ty.elements() == 1;
            is_row(step, rows)
                && is_total(c.prim, &c.args)
                && !has_twin(group, at)
                && (0..c.args.len()).all(|arg| is_value(arg) || is_of_rows(step, arg, rows))
        }
    }
}

/// Whether a step gives an element for each row.
fn is_row(step: &TiledStep, rows: usize) -> bool {
    let c = &step.compute;
    let kept = match step.result {
        TileResult::Tile => c.scratch.is_none(),
        TileResult::Rows => c.scratch.is_some(),
        TileResult::Total => false,
    };
    kept && !c.in_place && c.ty.elements() == rows
}

/// Whether an operand has an element for each row.
fn is_of_rows(step: &TiledStep, arg: usize, rows: usize) -> bool {
    matches!(step.parts[arg], Part::Tile | Part::Rows) && step.compute.args[arg].ty.elements() == rows
}

/// Whether the last operand of a step, this one, names places along the one axis of an array, the same ones in all lanes.
fn is_indexed(step: &TiledStep, array: usize, index: usize) -> bool {
    let (args, parts) = (&step.compute.args, &step.parts);
    args.len() == index + 1
        && parts[array] == Part::Whole
        && args[array].ty.shape.len() == 1
        && parts[index] == Part::Rows
        && args[index].broadcast
        && args[index].ty.shape.len() == 1
}

/// Whether two steps run as one kernel, which is quicker than both: see [`TiledStep::twin_of`].
fn has_twin(group: &Tiled, at: usize) -> bool {
    let twins = |first: usize| matches!(group.steps.get(first..first + 2), Some([a, b]) if b.twin_of(a));
    twins(at) || at > 0 && twins(at - 1)
}

/// Whether a primitive goes element by element, and never traps.
fn is_total(prim: Prim, args: &[Arg]) -> bool {
    let dtypes: Vec<DType> = args.iter().map(|a| a.ty.dtype).collect();
    matches!(prim.class(), Class::Identity(_)) || functions::is_total(prim, &dtypes)
}

/// How a step adds up its rows, if it does.
fn fold(step: &TiledStep) -> Option<Fold> {
    Fold::of_reals(step.compute.prim, step.compute.ty.dtype)
}

/// Where the result of a tile goes.
fn target(step: &TiledStep) -> SlotId {
    step.compute.scratch.unwrap_or(step.compute.slot)
}

/// What a function reads.
struct Read {
    step: usize,
    arg: usize,
    source: Source,
    dtype: DType,
    kind: ReadKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadKind {
    /// One value for all lanes and rows.
    Value,
    /// One for each lane.
    OfLane,
    /// One for each row.
    OfRow,
    /// One for each of both.
    Rows,
    /// A place for each row, the same one in all lanes.
    Index,
    /// An array for each lane.
    Arrays,
    /// An array for all lanes.
    Array,
}

struct Writer<'a> {
    group: &'a Tiled,
    steps: Range<usize>,
    reads: Vec<Read>,
    /// By where they go, the results of the steps so far.
    results: HashMap<SlotId, String>,
    /// The steps in the loop over rows and lanes.
    body: String,
    sums: Vec<usize>,
    stores: Vec<usize>,
    indices: Vec<(usize, usize)>,
}

impl<'a> Writer<'a> {
    fn new(group: &'a Tiled, steps: Range<usize>) -> Self {
        let (reads, results, body) = (Vec::new(), HashMap::new(), String::new());
        let (sums, stores, indices) = (Vec::new(), Vec::new(), Vec::new());
        Self { group, steps, reads, results, body, sums, stores, indices }
    }

    fn function(mut self, name: String, out: &mut String) -> TileSegment {
        for at in self.steps.clone() {
            self.step(at);
        }
        let is_kept = |at: &usize| self.group.steps[*at].result != TileResult::Tile || self.is_read_after(*at);
        self.stores = self.steps.clone().filter(is_kept).collect();
        self.write(&name, out);
        let reads = self.reads.iter().map(|read| (read.step, read.arg)).collect();
        TileSegment { steps: self.steps, name, reads, stores: self.stores, indices: self.indices }
    }

    /// The statement of a step.
    fn step(&mut self, at: usize) {
        let step = &self.group.steps[at];
        let c = &step.compute;
        let class = c.prim.class();
        if class == Class::Movement(Movement::ScatterAdd) {
            let (index, value) = (self.index(at, 2, c.args[0].ty.elements()), self.operand(at, 1));
            let place = format!("o{at} + {index} * width + at + g * LANES");
            return self.line(&format!("AB_TILE_ADD({place}, {value})"));
        }
        if let Some(fold) = fold(step) {
            let args: Vec<String> = (0..c.args.len()).map(|arg| self.operand(at, arg)).collect();
            let sum = format!("s{at}[g]");
            let called = operations::step(fold, c.ty.dtype, &sum, &args, String::new);
            self.line(&format!("{sum} = {};", called.text));
            return self.sums.push(at);
        }
        let text = match class {
            Class::Movement(Movement::Gather) => {
                let index = self.index(at, 1, c.args[0].ty.elements());
                let p = prefix(c.ty.dtype);
                match c.args[0].broadcast {
                    true => format!("{p}_splat(a{}[{index}])", self.read(at, 0, ReadKind::Array)),
                    false => {
                        let array = self.read(at, 0, ReadKind::Arrays);
                        format!("{p}_load(a{array} + {index} * width + at + g * LANES)")
                    }
                }
            }
            Class::Identity(_) => self.operand(at, 0),
            _ => {
                let args: Vec<String> = (0..c.args.len()).map(|arg| self.operand(at, arg)).collect();
                let dtypes: Vec<DType> = c.args.iter().map(|a| a.ty.dtype).collect();
                match functions::of(c.prim, &dtypes) {
                    Call::Total(function) => format!("{function}({})", args.join(", ")),
                    _ => unreachable!("`{}` is not taken", c.prim),
                }
            }
        };
        self.line(&format!("const {} v{at} = {text};", group_type(c.ty.dtype)));
        self.results.insert(target(step), format!("v{at}"));
    }

    /// A statement in the loop over rows and lanes.
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "                    {text}");
    }

    /// An operand of a step that has a value, or one for each row, as an expression.
    fn operand(&mut self, step: usize, arg: usize) -> String {
        let of = &self.group.steps[step];
        let (a, part) = (&of.compute.args[arg], of.parts[arg]);
        if let (Part::Tile, Source::Slot(slot)) = (part, a.source)
            && let Some(made) = self.results.get(&slot)
        {
            return made.clone();
        }
        let kind = match (part, a.broadcast) {
            (Part::Whole, true) => ReadKind::Value,
            (Part::Whole, false) => ReadKind::OfLane,
            (_, true) => ReadKind::OfRow,
            (_, false) => ReadKind::Rows,
        };
        let number = self.read(step, arg, kind);
        match kind {
            ReadKind::OfLane => format!("x{number}[g]"),
            _ => format!("x{number}"),
        }
    }

    /// The place that a step names in an array of this extent, as an expression.
    fn index(&mut self, step: usize, arg: usize, extent: usize) -> String {
        let number = self.read(step, arg, ReadKind::Index);
        if !self.indices.contains(&(number, extent)) {
            self.indices.push((number, extent));
        }
        format!("x{number}")
    }

    /// The number of what a step reads.
    fn read(&mut self, step: usize, arg: usize, kind: ReadKind) -> usize {
        let a = &self.group.steps[step].compute.args[arg];
        let is_same = |read: &Read| read.source == a.source && read.kind == kind;
        self.reads.iter().position(is_same).unwrap_or_else(|| {
            self.reads.push(Read { step, arg, source: a.source, dtype: a.ty.dtype, kind });
            self.reads.len() - 1
        })
    }

    /// Whether a step that is not in the function reads the result of one that is.
    fn is_read_after(&self, at: usize) -> bool {
        let made = target(&self.group.steps[at]);
        for later in &self.group.steps[at + 1..] {
            let c = &later.compute;
            let reads = c.args.iter().zip(&later.parts);
            let is_inside =
                |step: &TiledStep| self.group.steps[self.steps.clone()].iter().any(|s| std::ptr::eq(s, step));
            if !is_inside(later) && reads.into_iter().any(|(a, _)| a.source == Source::Slot(made)) {
                return true;
            }
            if target(later) == made {
                return false;
            }
        }
        false
    }

    fn write(&self, name: &str, out: &mut String) {
        let mut w = |line: String| {
            out.push_str(&line);
            out.push('\n');
        };
        let reads = || self.reads.iter().enumerate();
        let dtype = |at: &usize| self.group.steps[*at].compute.ty.dtype;
        w(format!("void {name}(const struct ab_tile *t) {{"));
        w("    const int64_t width = t->width, rows = t->rows;".to_owned());
        for (i, read) in reads() {
            let ty = memory_type(read.dtype);
            w(format!("    const {ty} *a{i} = t->reads[{i}];"));
        }
        for (i, at) in self.stores.iter().enumerate() {
            let ty = memory_type(dtype(at));
            w(format!("    {ty} *o{at} = t->stores[{i}];"));
        }
        for (i, read) in reads().filter(|(_, read)| read.kind == ReadKind::Value) {
            let (ty, p) = (group_type(read.dtype), prefix(read.dtype));
            w(format!("    const {ty} x{i} = {p}_splat(a{i}[0]);"));
        }
        w(format!("    for (int64_t at = 0; at < width; at += {ABREAST} * LANES) {{"));
        w(format!(
            "        const int64_t left = (width - at + LANES - 1) / LANES, groups = left < {ABREAST} ? left : {ABREAST};"
        ));
        // The last group may have lanes of which there are none.
        w("        const int64_t there = width - at - (groups - 1) * LANES;".to_owned());
        w("        const B last = b_from_bits(there < LANES ? (1u << there) - 1 : (1u << LANES) - 1);".to_owned());
        for (i, read) in reads().filter(|(_, read)| read.kind == ReadKind::OfLane) {
            let (ty, p) = (group_type(read.dtype), prefix(read.dtype));
            w(format!("        {ty} x{i}[{ABREAST}];"));
            w(format!("        for (int64_t g = 0; g < groups; g++) x{i}[g] = {p}_load(a{i} + at + g * LANES);"));
        }
        for at in &self.sums {
            w(format!("        R s{at}[{ABREAST}];"));
        }
        w("        for (int64_t first = 0; first < rows; first += AB_BLOCK) {".to_owned());
        w("            const int64_t end = first + AB_BLOCK < rows ? first + AB_BLOCK : rows;".to_owned());
        for at in &self.sums {
            w(format!("            for (int64_t g = 0; g < groups; g++) s{at}[g] = r_splat(0);"));
        }
        w("            for (int64_t r = first; r < end; r++) {".to_owned());
        for (i, _) in reads().filter(|(_, read)| read.kind == ReadKind::Index) {
            w(format!("                const int64_t x{i} = a{i}[r];"));
        }
        for (i, read) in reads().filter(|(_, read)| read.kind == ReadKind::OfRow) {
            let (ty, p) = (group_type(read.dtype), prefix(read.dtype));
            w(format!("                const {ty} x{i} = {p}_splat(a{i}[r]);"));
        }
        w("                for (int64_t g = 0; g < groups; g++) {".to_owned());
        w("                    const int64_t e = r * width + at + g * LANES;".to_owned());
        // A buffer that is stored to may be one that is read.
        for (i, read) in reads().filter(|(_, read)| read.kind == ReadKind::Rows) {
            let (ty, p) = (group_type(read.dtype), prefix(read.dtype));
            w(format!("                    const {ty} x{i} = {p}_load(a{i} + e);"));
        }
        out.push_str(&self.body);
        let mut w = |line: String| {
            out.push_str(&line);
            out.push('\n');
        };
        for at in self.stores.iter().filter(|at| self.group.steps[**at].result != TileResult::Total) {
            let p = prefix(dtype(at));
            w(format!("                    if (g + 1 < groups || there >= LANES) {p}_store(o{at} + e, v{at});"));
            w(format!("                    else {p}_store_masked(o{at} + e, last, v{at});"));
        }
        w("                }".to_owned());
        w("            }".to_owned());
        for at in &self.sums {
            w("            for (int64_t g = 0; g < groups; g++) {".to_owned());
            w(format!("                real *sum = o{at} + at + g * LANES;"));
            w(format!("                if (first > 0 || t->goes_on) s{at}[g] = r_add(r_load(sum), s{at}[g]);"));
            w(format!("                r_store_masked(sum, g + 1 < groups ? b_splat(1) : last, s{at}[g]);"));
            w("            }".to_owned());
        }
        w("        }".to_owned());
        w("    }".to_owned());
        w("}".to_owned());
    }
}
