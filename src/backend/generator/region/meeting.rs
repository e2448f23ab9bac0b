//! Where lanes meet: a block whose operations the threads of a scope do together for all lanes that wait there.
//!
//! Such a block has a product with a large shared matrix, or what goes row by row along a long axis with one: products that
//! make rows, functions of elements, sums over rows and products that add rows up. Rows are taken by blocks of [`BLOCK`], as
//! sums and products are defined, so the bits are those of each lane by itself. What is between the steps of one block of
//! rows stands in *tiles*, one column for each lane; numbers of a lane stand in its column, too.
//!
//! The text counts on names of `meetings.cuh`.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::place::{Place, View};
use super::text::{Variable, Writer};
use crate::backend::generator::ending::Ending;
use crate::backend::generator::functions::{self, Call, group_type, memory_type, prefix};
use crate::backend::generator::operations::{self, literal};
use crate::backend::generator::scope::Storage;
use crate::backend::generator::ssa::Fold;
use crate::base::Id as _;
use crate::parts::{self, SharedId, SharedSource};
use crate::plan::ConstantId;
use crate::prim::{BLOCK, Class, LOG_BLOCK, Prim, Reduction};
use crate::types::{DType, Type};
use crate::unit::{Block, BlockId, Globals, OpKind, Operand, ValueId, VarId};

/// A product of a matrix that is the same for all lanes and a vector of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::backend) struct SharedProduct {
    /// As it stands.
    matrix: SharedId,
    /// Where that is the transpose of another one, that one, which may be there alone.
    transpose_of: Option<SharedId>,
    vector: ValueId,
    /// Elements of the result.
    pub(in crate::backend) rows: usize,
    /// Elements of the vector.
    pub(in crate::backend) inner: usize,
    /// How far the elements of a column of the matrix stand apart, and those of a row.
    strides: [usize; 2],
    /// Whether zeros win over what is no number.
    chain: bool,
}

impl SharedProduct {
    /// What an operation is, if that.
    pub(in crate::backend) fn of<T>(kind: &OpKind, block: &Block<T>, globals: &Globals) -> Option<Self> {
        let OpKind::Compute { prim: prim @ (Prim::MatMul | Prim::ChainMatMul), args, .. } = kind else { return None };
        let chain = *prim == Prim::ChainMatMul;
        let types = [0, 1].map(|at| block.operand_type(args[at], globals));
        if types.iter().any(|ty| ty.dtype != DType::Real || ty.elements() == 0) {
            return None;
        }
        let (shared, vector, rows, inner, strides) = match (args[0], args[1], &types[0].shape[..], &types[1].shape[..])
        {
            (Operand::Shared(matrix), Operand::Var(vector), [rows, inner], [_]) => {
                (matrix, vector, *rows, *inner, [*inner, 1])
            }
            (Operand::Var(vector), Operand::Shared(matrix), [_], [inner, rows]) => {
                (matrix, vector, *rows, *inner, [1, *rows])
            }
            _ => return None,
        };
        let transpose_of = match &globals.shared[shared].source {
            SharedSource::Prim(Prim::Transpose, of) => match of[0] {
                parts::Operand::Shared(of) => Some(of),
                _ => None,
            },
            _ => None,
        };
        let is_product = rows > 1 && inner > 1;
        is_product.then_some(Self { matrix: shared, transpose_of, vector, rows, inner, strides, chain })
    }

    /// The matrix to be read, and how far its elements stand apart in a column and in a row: of a transpose the matrix itself,
    /// which other products read, where that is there.
    fn place(&self, storage: &Storage<'_>) -> Option<(ConstantId, [usize; 2])> {
        let Self { rows, inner, strides: [row, column], .. } = *self;
        let itself = self.transpose_of.and_then(|of| storage.constants[of]);
        match itself {
            Some(itself) if column == 1 => Some((itself, [1, rows])),
            Some(itself) => Some((itself, [inner, 1])),
            None => Some((storage.constants[self.matrix]?, [row, column])),
        }
    }
}

/// What goes row by row along an axis.
pub(in crate::backend) struct Rows {
    extent: usize,
    /// What has an element for each row and is made row by row.
    made: HashSet<ValueId>,
}

impl Rows {
    /// Of so many rows.
    pub(in crate::backend) fn new(extent: usize) -> Self {
        Self { extent, made: HashSet::new() }
    }

    /// Whether an operation, the next one of its block, goes row by row with those that did before. `later`: what is known
    /// when all rows have been gone through, of which the operation's own result may be one.
    pub(in crate::backend) fn takes<T>(
        &mut self,
        kind: &OpKind,
        later: &mut HashSet<ValueId>,
        block: &Block<T>,
        globals: &Globals,
    ) -> bool {
        let OpKind::Compute { dst, prim, args } = kind else { return false };
        if args.iter().filter_map(|arg| arg.var()).any(|value| later.contains(&value)) {
            return false;
        }
        let types: Vec<Type> = args.iter().map(|arg| block.operand_type(*arg, globals)).collect();
        let product = SharedProduct::of(kind, block, globals);
        match self.known(*prim, (args, &types), &block.values[*dst].ty, product) {
            Some(Made::RowByRow) => self.made.insert(*dst),
            Some(Made::After) => later.insert(*dst),
            None => return false,
        };
        true
    }

    /// When a value is known that goes row by row; none for one that does not.
    fn known(
        &self,
        prim: Prim,
        (args, types): (&[Operand], &[Type]),
        ty: &Type,
        product: Option<SharedProduct>,
    ) -> Option<Made> {
        if let Some(product) = product {
            let makes_rows = product.rows == self.extent && !self.made.contains(&product.vector);
            let made = if makes_rows { Made::RowByRow } else { Made::After };
            return (makes_rows || product.inner == self.extent).then_some(made);
        }
        let is_rows = |at: usize| types[at].shape[..] == [self.extent];
        if fold(prim, ty).is_some() {
            let adds_rows =
                ty.elements() == 1 && (0..args.len()).all(|at| is_rows(at) && types[at].dtype == DType::Real);
            return adds_rows.then_some(Made::After);
        }
        let is_made = |at: usize| args[at].var().is_some_and(|value| self.made.contains(&value));
        let is_row = |at: usize| is_rows(at) && (types[at].dtype == DType::Real || is_made(at));
        // A number of the lane is one of reals.
        let is_number =
            |at: usize| types[at].shape.is_empty() && (args[at].var().is_none() || types[at].dtype == DType::Real);
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let is_elementwise = ty.shape[..] == [self.extent]
            && functions::is_total(prim, &dtypes)
            && (0..args.len()).all(|at| is_number(at) || is_row(at));
        is_elementwise.then_some(Made::RowByRow)
    }
}

/// When a value is known.
enum Made {
    /// An element with each row.
    RowByRow,
    /// All of it after the last row.
    After,
}

/// How a primitive adds up reals, if it does.
fn fold(prim: Prim, ty: &Type) -> Option<Fold> {
    match prim.class() {
        Class::Reduction(of @ (Reduction::SumLog | Reduction::SumLog1pExp)) => Some(Fold::All(of)),
        _ => Fold::of_reals(prim, ty.dtype),
    }
}

/// Rows that a thread has of a product of so many: 32 rows of threads go through them.
fn rows_of_thread(rows: usize) -> usize {
    let time = |each: usize| rows.div_ceil(32 * each) * each * (2 * each + 1) / (2 * each);
    [8, 4, 2, 1].into_iter().min_by_key(|each| (time(*each), 8 - each)).expect("there are some")
}

/// What of a product is at hand.
#[derive(Clone, Copy)]
enum ProductExtent {
    /// All of it.
    Whole,
    /// Some rows of the matrix, which make as many elements of the result.
    SomeRows,
    /// Some elements of its rows, which add to all elements of the result.
    SomeInner,
}

/// An operation that goes row by row.
#[derive(Clone, Copy)]
struct RowOp<'b> {
    dst: ValueId,
    prim: Prim,
    args: &'b [Operand],
    is: RowOpKind,
}

/// What such an operation does.
#[derive(Clone, Copy)]
enum RowOpKind {
    /// A product that makes rows.
    MakesRows(SharedProduct),
    /// One that adds them up.
    AddsRows(SharedProduct),
    /// A sum of rows.
    Sum(Fold),
    /// A function of elements.
    Row,
}

/// What a meeting has where it is written.
struct Meeting<'b, T> {
    block: &'b Block<T>,
    /// The variables that values come from.
    loaded: HashMap<ValueId, VarId>,
    /// The variables that they go to.
    stored: HashMap<ValueId, VarId>,
    /// What is row by row, where it is there: of a tile its number.
    tiles: HashMap<ValueId, usize>,
    /// Numbers of lanes by what they are of.
    numbers: IndexMap<ValueId, usize>,
    /// How many there are, with those that are only between steps.
    used: usize,
    /// What the function is called with: names of addresses, and their types.
    parameters: IndexMap<String, String>,
}

impl<T: Ending> Writer<'_, T> {
    /// The statements of a block where lanes meet; `rows` is the extent of what goes row by row. None for what none is made
    /// of.
    pub(super) fn meeting(&mut self, id: BlockId, rows: Option<usize>) -> Option<()> {
        let units = self.units;
        let block = &units.blocks[id];
        let next = *block.term.successors().first()?;
        let mut meeting = Meeting {
            block,
            loaded: HashMap::new(),
            stored: HashMap::new(),
            tiles: HashMap::new(),
            numbers: IndexMap::new(),
            used: 0,
            parameters: IndexMap::new(),
        };
        for op in &block.ops {
            match &op.kind {
                OpKind::Load { dst, var } => _ = meeting.loaded.insert(*dst, *var),
                OpKind::Store { var, value } => _ = meeting.stored.insert(value.var()?, *var),
                OpKind::Compute { .. } => {}
                OpKind::Push { .. } | OpKind::Pop { .. } | OpKind::Effect(_) => return None,
            }
        }
        self.open(&format!("if (unit == {}) {{", id.index()));
        self.line(format!("const int here = pc == {};", id.index()));
        self.line("const uint32_t own = ab_meet(here, ab_base); (void)own;");
        self.numbers_of_lanes(&mut meeting);
        let name = format!("ab_met{}", id.index());
        let body = (std::mem::take(&mut self.body), std::mem::replace(&mut self.indent, 4));
        match rows {
            Some(rows) => self.meeting_by_rows(&mut meeting, rows)?,
            None => {
                self.line("AB_ALL_COLUMNS");
                self.meeting_for_product(&mut meeting)?;
            }
        }
        let body = (std::mem::replace(&mut self.body, body.0), std::mem::replace(&mut self.indent, body.1));
        let parameters = meeting.parameters.iter().map(|(name, ty)| format!(", {ty} *const {name}"));
        let parameters: String = parameters.collect();
        let arguments: String = meeting.parameters.keys().map(|name| format!(", {name}")).collect();
        // By itself it has registers of its own: those of the scheduler hold what lanes go on with.
        self.functions += &format!("AB_CALLED void {name}(AB_MEETING_PARAMETERS{parameters}) {{\n{}}}\n", body.0);
        self.line(format!("{name}(AB_MEETING_ARGUMENTS{arguments});"));
        for (value, number) in &meeting.numbers {
            let Some(var) = meeting.stored.get(value) else { continue };
            let Some(Variable::Number { name, .. }) = self.variables.get(var).cloned() else { return None };
            self.line(format!("if (here) {name} = ab_number({number}, own);"));
        }
        self.line(format!("if (here) pc = {};", next.index()));
        self.line("goto next;");
        self.close();
        let segment = &mut self.machine().segment;
        segment.tiles = segment.tiles.max(meeting.tiles.len());
        segment.numbers = segment.numbers.max(meeting.used);
        Some(())
    }

    /// What lanes that are here bring besides arrays.
    fn numbers_of_lanes(&mut self, meeting: &mut Meeting<'_, T>) {
        for op in &meeting.block.ops {
            let OpKind::Compute { args, .. } = &op.kind else { continue };
            for value in args.iter().filter_map(|arg| arg.var()) {
                let Some(var) = meeting.loaded.get(&value) else { continue };
                let Some(Variable::Number { name, .. }) = self.variables.get(var).cloned() else { continue };
                if !meeting.numbers.contains_key(&value) {
                    let number = meeting.number();
                    meeting.numbers.insert(value, number);
                    self.line(format!("if (here) ab_number({number}, own) = {name};"));
                }
            }
        }
        self.line("AB_TOGETHER();");
    }

    /// A product by itself.
    fn meeting_for_product(&mut self, meeting: &mut Meeting<'_, T>) -> Option<()> {
        let (dst, product) =
            meeting.block.ops.iter().find_map(|op| {
                Some((op.kind.dst()?, SharedProduct::of(&op.kind, meeting.block, self.storage.globals)?))
            })?;
        let from = self.lanes_of(meeting, *meeting.loaded.get(&product.vector)?)?;
        let to = self.lanes_of(meeting, *meeting.stored.get(&dst)?)?;
        self.shared_product(meeting, &product, ProductExtent::Whole, [&from, &to])?;
        self.line("AB_TOGETHER();");
        Some(())
    }

    /// The call of a product of vectors from here, whose results go there.
    fn shared_product(
        &mut self,
        meeting: &mut Meeting<'_, T>,
        product: &SharedProduct,
        extent: ProductExtent,
        [from, to]: [&str; 2],
    ) -> Option<()> {
        let (constant, [row, column]) = product.place(self.storage)?;
        let matrix = self.shared_value(meeting, constant, DType::Real)?;
        let (rows, inner) = (product.rows.to_string(), product.inner.to_string());
        let (most, first, rows, inner, adds) = match extent {
            ProductExtent::Whole => (product.rows, "0".to_owned(), &rows[..], &inner[..], "0"),
            ProductExtent::SomeRows => (BLOCK, format!("first * (int64_t){row}"), "rows", &inner[..], "0"),
            ProductExtent::SomeInner => {
                (product.rows, format!("first * (int64_t){column}"), &rows[..], "rows", "first > 0")
            }
        };
        let (each, chain, along) = (rows_of_thread(most), u8::from(product.chain), u8::from(column == 1));
        self.line(format!(
            "AB_PRODUCT({each}, {chain}, {along}, {matrix} + {first}, {row}, {column}, {rows}, {inner}, {from}, {to}, {adds});"
        ));
        Some(())
    }

    /// The address of a shared value.
    fn shared_value(&mut self, meeting: &mut Meeting<'_, T>, constant: ConstantId, dtype: DType) -> Option<String> {
        let name = self.constant(constant, dtype)?;
        // Those of tables are ints and reals.
        let ty = if dtype == DType::Real { "real" } else { memory_type(dtype) };
        meeting.parameters.insert(name.clone(), format!("const {ty}"));
        Some(name)
    }

    /// The lane buffer of an array, as the operand of a product.
    fn lanes_of(&mut self, meeting: &mut Meeting<'_, T>, var: VarId) -> Option<String> {
        let Variable::Array(View { place: Place::Slot(slot), first: (None, 0), .. }, _) = self.variables.get(&var)?
        else {
            return None;
        };
        let slot = *slot;
        self.signature.slots.insert(slot);
        let name = format!("p{}", slot.index());
        meeting.parameters.insert(name.clone(), "real".to_owned());
        Some(format!("AB_LANES({name})"))
    }

    /// What goes row by row, for all rows.
    fn meeting_by_rows(&mut self, meeting: &mut Meeting<'_, T>, rows: usize) -> Option<()> {
        let computed = self.row_ops(meeting, rows);
        // What a product makes, and what a later step but the next functions reads, stands in a tile.
        for step in &computed {
            if matches!(step.is, RowOpKind::MakesRows(_)) {
                meeting.tile(step.dst);
            }
            if matches!(step.is, RowOpKind::AddsRows(_) | RowOpKind::Sum(_)) {
                for value in step.args.iter().filter_map(|arg| arg.var()) {
                    if !meeting.loaded.contains_key(&value) {
                        meeting.tile(value);
                    }
                }
            }
        }
        self.open("AB_PASSES {");
        self.open(&format!("for (int first = 0; first < {rows}; first += {BLOCK}) {{"));
        self.line(format!("const int rows = {rows} - first < {BLOCK} ? {rows} - first : {BLOCK};"));
        for step in &computed {
            let RowOpKind::MakesRows(product) = step.is else { continue };
            let from = self.lanes_of(meeting, *meeting.loaded.get(&product.vector)?)?;
            let to = format!("AB_TILE({})", meeting.tiles[&step.dst]);
            self.shared_product(meeting, &product, ProductExtent::SomeRows, [&from, &to])?;
        }
        self.line("AB_TOGETHER();");
        self.functions_of_rows(meeting, &computed)?;
        self.line("AB_TOGETHER();");
        self.sums_of_rows(meeting, &computed)?;
        for step in &computed {
            let RowOpKind::AddsRows(product) = step.is else { continue };
            let from = match meeting.tiles.get(&product.vector) {
                Some(tile) => format!("AB_TILE({tile})"),
                None => {
                    let lanes = self.lanes_of(meeting, *meeting.loaded.get(&product.vector)?)?;
                    format!("AB_FROM({lanes}, first)")
                }
            };
            let to = self.lanes_of(meeting, *meeting.stored.get(&step.dst)?)?;
            self.shared_product(meeting, &product, ProductExtent::SomeInner, [&from, &to])?;
        }
        self.line("AB_TOGETHER();");
        self.close();
        self.close();
        Some(())
    }

    /// The operations of a meeting, with what they do to so many rows.
    fn row_ops<'b>(&self, meeting: &Meeting<'b, T>, rows: usize) -> Vec<RowOp<'b>> {
        let block = meeting.block;
        let computed = block.ops.iter().filter_map(|op| {
            let OpKind::Compute { dst, prim, args } = &op.kind else { return None };
            let is = match SharedProduct::of(&op.kind, block, self.storage.globals) {
                // A vector that is made row by row is known too late for other rows.
                Some(product) if product.rows == rows && meeting.loaded.contains_key(&product.vector) => {
                    RowOpKind::MakesRows(product)
                }
                Some(product) => RowOpKind::AddsRows(product),
                None => fold(*prim, &block.values[*dst].ty).map_or(RowOpKind::Row, RowOpKind::Sum),
            };
            Some(RowOp { dst: *dst, prim: *prim, args, is })
        });
        computed.collect()
    }

    /// The functions of elements, of all rows at hand; and what is kept of rows.
    fn functions_of_rows(&mut self, meeting: &mut Meeting<'_, T>, computed: &[RowOp<'_>]) -> Option<()> {
        let block = meeting.block;
        let has_text = |step: &&RowOp<'_>| match step.is {
            RowOpKind::Row => true,
            RowOpKind::MakesRows(_) => meeting.stored.contains_key(&step.dst),
            RowOpKind::AddsRows(_) | RowOpKind::Sum(_) => false,
        };
        let own: Vec<RowOp<'_>> = computed.iter().filter(has_text).copied().collect();
        if own.is_empty() {
            return Some(());
        }
        let mut made: HashMap<ValueId, String> = HashMap::new();
        self.open("AB_EACH(r, column, rows) {");
        for RowOp { dst, prim, args, is } in own {
            if let RowOpKind::Row = is {
                let operands: Vec<String> =
                    args.iter().map(|arg| self.row(meeting, &made, *arg)).collect::<Option<_>>()?;
                let dtypes: Vec<DType> =
                    args.iter().map(|arg| block.operand_type(*arg, self.storage.globals).dtype).collect();
                let Call::Total(function) = functions::of(prim, &dtypes) else { return None };
                let (name, ty) = (format!("x{}", dst.index()), group_type(block.values[dst].ty.dtype));
                self.line(format!("const {ty} {name} = {function}({});", operands.join(", ")));
                if let Some(tile) = meeting.tiles.get(&dst) {
                    self.line(format!("ab_tile({tile}, r, column) = {name};"));
                }
                made.insert(dst, name);
            }
            if let Some(var) = meeting.stored.get(&dst) {
                let to = self.lanes_of(meeting, *var)?;
                let value = self.row(meeting, &made, Operand::Var(dst))?;
                self.line(format!("AB_OF_LANE({to}, first + r, column) = {value};"));
            }
        }
        self.close();
        Some(())
    }

    /// An operand where a row and a column are at hand, as an expression.
    fn row(
        &mut self,
        meeting: &mut Meeting<'_, T>,
        made: &HashMap<ValueId, String>,
        operand: Operand,
    ) -> Option<String> {
        match operand {
            Operand::Const(scalar) => Some(literal(scalar)),
            Operand::Shared(shared) => {
                let ty = self.storage.globals.shared[shared].ty.clone();
                let constant = self.storage.constants[shared]?;
                let at = if ty.elements() == 1 && ty.shape.is_empty() { "0" } else { "first + r" };
                let name = self.shared_value(meeting, constant, ty.dtype)?;
                Some(format!("{}_splat({name}[{at}])", prefix(ty.dtype)))
            }
            Operand::Var(value) => {
                if let Some(name) = made.get(&value) {
                    return Some(name.clone());
                }
                if let Some(tile) = meeting.tiles.get(&value) {
                    return Some(format!("ab_tile({tile}, r, column)"));
                }
                if let Some(number) = meeting.numbers.get(&value) {
                    return Some(format!("ab_number({number}, column)"));
                }
                let lanes = self.lanes_of(meeting, *meeting.loaded.get(&value)?)?;
                Some(format!("AB_OF_LANE({lanes}, first + r, column)"))
            }
        }
    }

    /// The sums of the rows at hand, each of a column by one thread.
    fn sums_of_rows(&mut self, meeting: &mut Meeting<'_, T>, computed: &[RowOp<'_>]) -> Option<()> {
        let sums = computed.iter().filter_map(|step| match step.is {
            RowOpKind::Sum(fold) => Some((*step, fold)),
            _ => None,
        });
        let sums: Vec<(RowOp<'_>, Fold)> = sums.collect();
        if sums.is_empty() {
            return Some(());
        }
        for (step, _) in &sums {
            let number = meeting.number();
            meeting.numbers.insert(step.dst, number);
        }
        let parts = self.log_sums_of_rows(meeting, &sums)?;
        let made = HashMap::new();
        self.open(&format!("AB_EACH_COLUMN(sum, column, {}) {{", sums.len()));
        self.open("switch (sum) {");
        for (at, (RowOp { dst, args, .. }, fold)) in sums.iter().enumerate() {
            let total = format!("ab_number({}, column)", meeting.numbers[dst]);
            self.open(&format!("case {at}: {{"));
            if let Some(part) = parts.get(dst) {
                let of_block = |b: &str| format!("ab_number({part} + {b}, column)");
                self.line(format!("R s = first > 0 ? {total} : {};", of_block("0")));
                self.open(&format!("for (int b = first > 0 ? 0 : 1; b * {LOG_BLOCK} < rows; b++) {{"));
                self.line(format!("s = r_add(s, {});", of_block("b")));
                self.close();
                self.line(format!("{total} = s;"));
            } else {
                self.line("R s = r_splat(0);");
                self.open("AB_UNROLL(8) for (int r = 0; r < rows; r++) {");
                let operands: Vec<String> =
                    args.iter().map(|arg| self.row(meeting, &made, *arg)).collect::<Option<_>>()?;
                let step = operations::step(*fold, DType::Real, "s", &operands, String::new);
                self.line(format!("s = {};", step.text));
                self.close();
                self.line(format!("{total} = first > 0 ? r_add({total}, s) : s;"));
            }
            self.line("break;");
            self.close();
        }
        self.close();
        self.close();
        Some(())
    }

    /// Of sums of logarithms those of the smaller blocks that they go by, which are added up in the order of the rows; by sum the
    /// number of the first.
    fn log_sums_of_rows(
        &mut self,
        meeting: &mut Meeting<'_, T>,
        sums: &[(RowOp<'_>, Fold)],
    ) -> Option<HashMap<ValueId, usize>> {
        let of_logs = sums.iter().filter_map(|(step, fold)| Some((*step, fold.log_sum()?)));
        let of_logs: Vec<(RowOp<'_>, &str)> = of_logs.collect();
        let mut parts = HashMap::new();
        if of_logs.is_empty() {
            return Some(parts);
        }
        let blocks = BLOCK / LOG_BLOCK;
        self.open(&format!("AB_EACH_COLUMN(part, column, {}) {{", of_logs.len() * blocks));
        self.line(format!("const int begin = part % {blocks} * {LOG_BLOCK};"));
        self.line(format!("const int end = begin + {LOG_BLOCK} < rows ? begin + {LOG_BLOCK} : rows;"));
        self.line("R product, addends = r_splat(0);");
        self.open(&format!("switch (part / {blocks}) {{"));
        for (at, (RowOp { dst, args, .. }, c)) in of_logs.into_iter().enumerate() {
            let part = meeting.used;
            meeting.used += blocks;
            self.line(format!("case {at}:"));
            self.line(format!("product = r_{c}_start();"));
            self.open("AB_UNROLL(4) for (int r = begin; r < end; r++) {");
            let x = self.row(meeting, &HashMap::new(), args[0])?;
            self.line(format!("r_{c}_step(&product, &addends, {x});"));
            self.close();
            let of_block = format!("ab_number({part} + part % {blocks}, column)");
            self.line(format!("if (begin < end) {of_block} = r_{c}_end(product, addends);"));
            self.line("break;");
            parts.insert(dst, part);
        }
        self.close();
        self.close();
        self.line("AB_TOGETHER();");
        Some(parts)
    }
}

impl<T> Meeting<'_, T> {
    fn number(&mut self) -> usize {
        self.used += 1;
        self.used - 1
    }
    /// A value gets a tile, if it has none.
    fn tile(&mut self, value: ValueId) {
        let next = self.tiles.len();
        self.tiles.entry(value).or_insert(next);
    }
}
