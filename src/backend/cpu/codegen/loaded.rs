//! Generated code that is compiled and loaded.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::backend::cpu::codegen::abi::{CodeFunction, TileFunction};
use crate::backend::cpu::codegen::compiler::{CodegenError, Compiler, CompilerOptions, Key, Library};
use crate::backend::cpu::codegen::{BlockPart, Code, RegionSegment, Segment, StraightSegment, TileSegment};
use crate::base::{Id as _, IdVec};
use crate::plan::cost::ByCode;
use crate::plan::{self, BlockId, Body, Step, StepKind, Unit};
use crate::types::Precision;

/// The generated functions of a plan.
#[derive(Debug)]
pub struct Native {
    bodies: Vec<NativeBody>,
    /// Holds the functions in memory.
    _library: Library,
}

/// The generated functions of a body.
#[derive(Debug)]
pub struct NativeBody {
    blocks: IdVec<BlockId, Vec<NativePart>>,
    group: usize,
    /// Of each block that is one function, its end included, that function.
    routed: IdVec<BlockId, Option<NativeSegment>>,
    /// Of each region, and each loop in one, that is one function that function, by its first block.
    regions: IdVec<BlockId, Option<NativeRegion>>,
    straight: Option<NativeStraight>,
}

/// The straight function of a program.
#[derive(Debug)]
pub struct NativeStraight {
    /// The segment.
    pub segment: StraightSegment,
    /// Its function, which lives as long as the [`Native`].
    pub function: CodeFunction,
    /// Of each block whether it has it.
    has: IdVec<BlockId, bool>,
}

impl NativeStraight {
    /// Whether it has all blocks of a unit.
    pub fn has(&self, unit: &Unit) -> bool {
        self.has[unit.blocks[0]]
    }
}

/// What a block runs, in its order.
#[derive(Debug)]
pub enum NativePart {
    /// Steps as they are.
    Steps(Range<usize>),
    /// A function in the place of steps.
    Segment(NativeSegment),
    /// A step that runs tile by tile, and functions in the place of some of the steps of its group.
    Tiles(usize, Vec<NativeTile>),
}

/// A segment and its function.
#[derive(Debug)]
pub struct NativeSegment {
    /// The segment.
    pub segment: Segment,
    /// Its function, which lives as long as the [`Native`].
    pub function: CodeFunction,
}

/// A function of a tile.
#[derive(Debug)]
pub struct NativeTile {
    /// The segment.
    pub segment: TileSegment,
    /// Its function, which lives as long as the [`Native`].
    pub function: TileFunction,
    /// Lanes that it computes at once.
    pub group: usize,
}

/// A region and its function.
#[derive(Debug)]
pub struct NativeRegion {
    /// The region.
    pub region: RegionSegment,
    /// Its function, which lives as long as the [`Native`].
    pub function: CodeFunction,
    /// Lanes that it computes at once.
    pub group: usize,
}

impl Native {
    /// Compiles and loads code for this width of `real`. The compiler is ended when `stop` is set.
    ///
    /// # Errors
    /// Where there is no C compiler, or it fails, or is ended.
    pub fn new(code: Code, precision: Precision, stop: Option<Arc<AtomicBool>>) -> Result<Self, CodegenError> {
        let compiler = Compiler::find()?.with_stop(stop);
        let (library, ()) =
            compiler.load_with(&code.text, &options(&code, precision), |library| has_all(library, &code))?;
        Self::link(code, library)
    }

    /// Loads what an earlier run has left on disk; or gives back the code, where there is nothing.
    ///
    /// # Errors
    /// Where others can change what is kept.
    pub(super) fn kept(
        code: Code,
        precision: Precision,
        compiler: &Compiler,
    ) -> Result<Result<Self, Code>, CodegenError> {
        match compiler.kept(&code.text, &options(&code, precision), |library| has_all(library, &code))? {
            Some((library, ())) => Self::link(code, library).map(Ok),
            None => Ok(Err(code)),
        }
    }

    /// Under what times that were measured of code are kept.
    pub(super) fn times_key(code: &Code, precision: Precision, compiler: &Compiler) -> Key {
        compiler.times_key(&code.text, &options(code, precision))
    }

    /// Compiles code, whatever is on disk, and loads it.
    ///
    /// # Errors
    /// Where the compiler fails, or is ended.
    pub(super) fn made(code: Code, precision: Precision, compiler: &Compiler) -> Result<Self, CodegenError> {
        let (library, ()) = compiler.made(&code.text, &options(&code, precision), |library| has_all(library, &code))?;
        Self::link(code, library)
    }

    /// Finds the functions of code in its library.
    fn link(code: Code, library: Library) -> Result<Self, CodegenError> {
        // SAFETY: the text defines a constant of this name and type; the library is loaded.
        let group = unsafe { *library.symbol::<*const i64>("autobatch_group")? } as usize;
        let part = |part: BlockPart| {
            Ok(match part {
                BlockPart::Steps(range) => NativePart::Steps(range),
                BlockPart::Native(segment) => {
                    // SAFETY: the text defines a function of this name and type.
                    let function = unsafe { library.symbol::<CodeFunction>(&segment.name)? };
                    NativePart::Segment(NativeSegment { segment, function })
                }
                BlockPart::Tiles(step, segments) => {
                    let tile = |segment: TileSegment| {
                        // SAFETY: the text defines a function of this name and type.
                        let function = unsafe { library.symbol::<TileFunction>(&segment.name)? };
                        Ok(NativeTile { segment, function, group })
                    };
                    NativePart::Tiles(step, segments.into_iter().map(tile).collect::<Result<_, CodegenError>>()?)
                }
            })
        };
        let region = |region: Option<RegionSegment>| {
            let Some(region) = region else { return Ok(None) };
            // SAFETY: the text defines a function of this name and type.
            let function = unsafe { library.symbol::<CodeFunction>(&region.name)? };
            Ok(Some(NativeRegion { region, function, group }))
        };
        let body = |(blocks, regions): (IdVec<BlockId, Vec<BlockPart>>, IdVec<BlockId, Option<RegionSegment>>)| {
            let parts = blocks.into_values().map(|parts| parts.into_iter().map(part).collect());
            let mut blocks: IdVec<BlockId, Vec<NativePart>> = parts.collect::<Result<_, CodegenError>>()?;
            let routed = blocks.values_mut().map(take_routed).collect();
            let regions = regions.into_values().map(region).collect::<Result<_, CodegenError>>()?;
            Ok(NativeBody { blocks, routed, regions, straight: None, group })
        };
        let bodies = code.bodies.into_iter().zip(code.regions).map(body);
        let mut bodies: Vec<NativeBody> = bodies.collect::<Result<_, CodegenError>>()?;
        if let (Some(segment), Some(body)) = (code.straight, bodies.first_mut()) {
            // SAFETY: the text defines a function of this name and type.
            let function = unsafe { library.symbol::<CodeFunction>(&segment.region.name)? };
            let mut has = IdVec::filled(false, body.blocks.len());
            segment.region.blocks.iter().for_each(|block| has[BlockId::new(block.index())] = true);
            body.straight = Some(NativeStraight { segment, function, has });
        }
        Ok(Self { bodies, _library: library })
    }

    /// A body, by its number.
    pub fn body(&self, body: usize) -> &NativeBody {
        &self.bodies[body]
    }
}

fn options(code: &Code, precision: Precision) -> CompilerOptions {
    CompilerOptions { real_f32: precision == Precision::F32, target: code.target() }
}

/// Whether a library has what the text defines.
fn has_all(library: &Library, code: &Code) -> Result<(), CodegenError> {
    let parts = code.bodies.iter().flat_map(|body| body.values().flatten());
    let names = parts.flat_map(|part| match part {
        BlockPart::Steps(_) => Vec::new(),
        BlockPart::Native(segment) => vec![segment.name.as_str()],
        BlockPart::Tiles(_, segments) => segments.iter().map(|segment| segment.name.as_str()).collect(),
    });
    let regions = code.regions.iter().flat_map(IdVec::values).flatten().map(|region| region.name.as_str());
    let straight = code.straight.iter().map(|straight| straight.region.name.as_str());
    for name in names.chain(regions).chain(straight).chain(["autobatch_group"]) {
        // SAFETY: the pointer is not used.
        unsafe { library.symbol::<*const u8>(name)? };
    }
    Ok(())
}

/// The function that is all of a block, if there is one; what is left are its steps.
fn take_routed(parts: &mut Vec<NativePart>) -> Option<NativeSegment> {
    let routes = |p: &NativePart| matches!(p, NativePart::Segment(s) if s.segment.routes);
    match parts.pop_if(|p| routes(p))? {
        NativePart::Segment(native) => {
            parts.push(NativePart::Steps(native.segment.steps.clone()));
            Some(native)
        }
        NativePart::Steps(_) | NativePart::Tiles(..) => None,
    }
}

impl NativeBody {
    /// The function that is all of a unit: it takes the lanes that wait there and sends them on.
    pub fn routed(&self, unit: &Unit) -> Option<&NativeSegment> {
        self.routed[unit.blocks[0]].as_ref()
    }
    /// The straight function.
    pub fn straight(&self) -> Option<&NativeStraight> {
        self.straight.as_ref()
    }
    /// The function of several blocks of a region that begins with this one.
    pub fn region(&self, first: BlockId) -> Option<&NativeRegion> {
        self.regions[first].as_ref()
    }
    /// Whether a unit is a region that is one function.
    fn is_one_region(&self, unit: &Unit) -> bool {
        self.region(unit.blocks[0]).is_some_and(|native| native.region.blocks.len() == unit.blocks.len())
    }
    /// What a block runs.
    pub fn parts(&self, block: BlockId) -> &[NativePart] {
        &self.blocks[block]
    }

    /// Lanes that the functions compute at once; groups in which no lane is active are not computed.
    pub fn group(&self) -> usize {
        self.group
    }

    /// Whether all that the blocks of a body compute is in functions.
    pub fn computes_all<T>(&self, body: &Body<T>) -> bool {
        let is_function = |id: BlockId, block: &plan::Block<T>| {
            self.routed[id].is_some() || self.is_one_region(&body.units[block.unit])
        };
        let blocks = body.blocks.iter().filter(|(id, block)| !is_function(*id, block));
        let mut parts = blocks.flat_map(|(id, block)| self.blocks[id].iter().map(move |part| (block, part)));
        let computes = |step: &Step| match &step.kind {
            StepKind::Compute(c) => !c.uniform,
            StepKind::Tiled(_) => true,
            _ => false,
        };
        parts.all(|(block, part)| match part {
            NativePart::Steps(range) => !block.steps[range.clone()].iter().any(computes),
            NativePart::Segment(_) => true,
            NativePart::Tiles(..) => false,
        })
    }

    /// What of a unit its functions have.
    pub fn has_of<T>(&self, body: &Body<T>, unit: &Unit) -> ByCode {
        let regions = unit.blocks.iter().filter_map(|block| self.region(*block));
        let in_regions: HashSet<usize> =
            regions.flat_map(|native| &native.region.blocks).map(|block| block.index()).collect();
        let of_block = |block: &BlockId| {
            let (steps, is_looped) = (&body.blocks[*block].steps, unit.region && *block != unit.blocks[0]);
            if in_regions.contains(&block.index()) {
                return ByCode::of(steps, is_looped);
            }
            let segments = self.parts(*block).iter().filter_map(|part| match part {
                NativePart::Segment(native) => Some(native.segment.steps.clone()),
                NativePart::Steps(_) | NativePart::Tiles(..) => None,
            });
            segments.map(|range| ByCode::of(&steps[range], is_looped)).sum()
        };
        unit.blocks.iter().map(of_block).sum()
    }

    /// Whether the blocks of a unit, which is not routed, are all functions.
    pub fn is_whole(&self, unit: &Unit) -> bool {
        let parts = unit.blocks.iter().flat_map(|b| &self.blocks[*b]);
        self.is_one_region(unit) || parts.into_iter().all(|p| matches!(p, NativePart::Segment(_)))
    }
}
