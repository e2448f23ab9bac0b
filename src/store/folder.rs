//! The folder of a store: what is made in it first, the commit rule, and locks.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::array::{PART, replace};
use super::coordinates::StoredTexts;
use super::{BLOCK, BlockStates, DATA_SET, RunPlan, StoredArray, StoredElement};
use crate::program::{Error, ErrorKind};
use crate::types::Array;

/// The folder that is no business of readers.
const OWN: &str = "_autobatch";
/// The metadata of the root, with those of all arrays.
pub const METADATA: &str = "zarr.json";

/// Settings that are attributes of their own.
const TOLD: [&str; 3] = ["thin", "max_treedepth", "target_accept"];

/// Whether a run is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunStatus {
    /// It runs, or was killed.
    Running,
    /// All draws are there.
    Complete,
    /// It was stopped in order; it can go on.
    Interrupted,
}

impl RunStatus {
    /// The word of the attribute `status`.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Complete => "complete",
            RunStatus::Interrupted => "interrupted",
        }
    }
}

/// Chains of a store that are written together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainBlock {
    /// Its number.
    pub number: usize,
    /// Its chains, counted from the first of the store.
    pub chains: Range<usize>,
}

/// Rows of a chain that are to be written: of the chain `chain` of a block `count` rows from `row` on, which stand in an
/// array of values from `from` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub(crate) chain: usize,
    pub(crate) row: usize,
    pub(crate) count: usize,
    pub(crate) from: usize,
}

/// A store that is written.
#[derive(Debug)]
pub struct RunStore {
    root: PathBuf,
    plan: RunPlan,
    /// Arrays along chains and draws; those of warmup count its states.
    of_draws: Vec<StoredArray>,
    /// Arrays that stand whole, and those along chains alone.
    others: Vec<StoredArray>,
    /// Texts along axes.
    texts: Vec<StoredTexts>,
    /// Held as long as the blocks are written.
    _locks: Vec<File>,
}

/// The file of a lock of a store.
fn lock_file(root: &Path, name: &str) -> PathBuf {
    root.join("_autobatch/lock").join(name)
}

fn open_lock(path: &Path) -> Result<File, Error> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    let opened = made.and_then(|()| File::options().create(true).truncate(false).write(true).open(path));
    opened.map_err(|error| not_locked(path, &error))
}

fn not_locked(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot lock {}: {error}", path.display()))
}

impl RunStore {
    /// Makes the folder of a run, with files that the plan names: they are the programs and the data.
    ///
    /// # Errors
    /// Where there is something already, and where it cannot be written.
    pub fn create(root: &Path, plan: &RunPlan, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        if RunPlan::exists(root) {
            let shown = root.display();
            let message =
                format!("{shown} is there already: go on with it by `autobatch resume {shown}`, or remove it");
            return Err(Error::new(ErrorKind::Io, message));
        }
        Self::check_free(root)?;
        let _making = Self::lock_making(root)?;
        if RunPlan::exists(root) {
            let message = format!("{} was made by another process just now: give another name", root.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
        Self::make(root, plan, files)
    }

    /// Waits until nobody else makes this store: files of two runs must not come into one folder.
    fn lock_making(root: &Path) -> Result<File, Error> {
        let path = lock_file(root, "making");
        let file = open_lock(&path)?;
        file.lock().map_err(|error| not_locked(&path, &error))?;
        Ok(file)
    }

    /// Refuses a folder in which something is already that is not the beginning of a store: programs and data.
    fn check_free(root: &Path) -> Result<(), Error> {
        let shown = root.display();
        if root.join(OWN).join("state").exists() {
            let message = format!("{shown} is a store that has lost its plan: remove it, or give another name");
            return Err(Error::new(ErrorKind::Io, message));
        }
        match fs::read_dir(root) {
            Ok(entries) => match entries.flatten().find(|entry| entry.file_name() != OWN) {
                Some(_) => Err(Error::new(ErrorKind::Io, format!("{shown} is there already: give another name"))),
                None => Ok(()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::new(ErrorKind::Io, format!("cannot make {shown}: {error}"))),
        }
    }

    /// Makes the folder.
    fn make(root: &Path, plan: &RunPlan, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        for (name, bytes) in files {
            replace(&root.join(name), bytes)?;
        }
        // Last: with it the store is one.
        plan.write(root)
    }

    /// Joins processes that fill a store, or is the first of them.
    ///
    /// # Errors
    /// Where the store is that of another run, and where it cannot be written.
    pub fn join_or_create(root: &Path, plan: &RunPlan, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        if !RunPlan::exists(root) {
            // Another process may make it between the two.
            Self::check_free(root).or_else(|error| if RunPlan::exists(root) { Ok(()) } else { Err(error) })?;
            let _making = Self::lock_making(root)?;
            if !RunPlan::exists(root) {
                return Self::make(root, plan, files);
            }
        }
        let there = RunPlan::read(root)?;
        if there != *plan {
            let message = format!("{} is the store of another run: {}", root.display(), there.difference(plan));
            return Err(Error::new(ErrorKind::Input, message));
        }
        let differs = |(name, bytes): &&(String, Vec<u8>)| fs::read(root.join(name)).is_ok_and(|there| there != *bytes);
        if let Some((name, _)) = files.iter().find(differs) {
            let message = format!("{} is the store of another run: {name} is not the same there", root.display());
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(())
    }

    /// Looks at a store, whoever writes to it.
    ///
    /// # Errors
    /// Where it is none, or has no arrays yet.
    pub fn look_at(root: &Path) -> Result<Self, Error> {
        let plan = RunPlan::read(root)?;
        let mut store =
            Self { root: root.to_owned(), plan, of_draws: vec![], others: vec![], texts: vec![], _locks: vec![] };
        store.read_arrays()?;
        Ok(store)
    }

    /// Opens a store to write these chains, which nobody else may write as long as it is open.
    ///
    /// # Errors
    /// Where it is none, and where another process writes it.
    pub fn open(root: &Path, chains: Range<usize>) -> Result<Self, Error> {
        let plan = RunPlan::read(root)?;
        let mut store =
            Self { root: root.to_owned(), plan, of_draws: vec![], others: vec![], texts: vec![], _locks: vec![] };
        let blocks = store.blocks(&chains)?;
        store._locks = blocks.iter().map(|block| store.lock(block.number)).collect::<Result<_, _>>()?;
        Ok(store)
    }

    fn lock(&self, block: usize) -> Result<File, Error> {
        let path = lock_file(&self.root, &block.to_string());
        let file = open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process writes to {}: two cannot", self.root.display());
                Err(Error::new(ErrorKind::Io, message))
            }
            Err(TryLockError::Error(error)) => Err(not_locked(&path, &error)),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What is run.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// Asks for more draws.
    ///
    /// # Errors
    /// Where the plan cannot be written.
    pub fn set_draws(&mut self, draws: usize) -> Result<(), Error> {
        self.plan.draws = draws;
        self.plan.write(&self.root)
    }

    /// The chains of a block.
    pub fn chains_of_block(&self) -> usize {
        BLOCK.min(self.plan.chains)
    }

    /// The blocks of these chains.
    ///
    /// # Errors
    /// For chains that there are not, and those of a part of a block.
    pub fn blocks(&self, chains: &Range<usize>) -> Result<Vec<ChainBlock>, Error> {
        let all = self.plan.chains;
        if chains.start >= chains.end || chains.end > all {
            let message = format!("the store has the chains 0..{all}, and not {}..{}", chains.start, chains.end);
            return Err(Error::new(ErrorKind::Option, message));
        }
        if !chains.start.is_multiple_of(BLOCK) || !chains.end.is_multiple_of(BLOCK) && chains.end != all {
            let message = format!(
                "chains are stored by {BLOCK}, so that two processes never write to one file: {}..{} must start and end at \
                 multiples of {BLOCK}, or end with the last chain",
                chains.start, chains.end
            );
            return Err(Error::new(ErrorKind::Option, message));
        }
        let block = |start: usize| ChainBlock { number: start / BLOCK, chains: start..(start + BLOCK).min(all) };
        Ok(chains.clone().step_by(BLOCK).map(block).collect())
    }

    /// Says what arrays there are, those along chains and draws and others, and shows as much of them as is there.
    ///
    /// # Errors
    /// Where the metadata cannot be written.
    pub fn declare(&mut self, of_draws: Vec<StoredArray>, others: Vec<StoredArray>) -> Result<(), Error> {
        (self.of_draws, self.others) = (of_draws, others);
        let states = self.known_states()?;
        self.publish(Self::extents(states.iter()), RunStatus::Running)
    }

    /// Says what arrays there are, those along chains and draws and those along chains, where the metadata cannot tell.
    pub fn assume(&mut self, of_draws: Vec<StoredArray>, along_chains: Vec<StoredArray>) {
        (self.of_draws, self.others) = (of_draws, along_chains);
    }

    /// Reads what arrays there are.
    ///
    /// # Errors
    /// Where nothing was declared yet, and where the metadata cannot be read.
    pub fn read_arrays(&mut self) -> Result<(), Error> {
        let root = self.metadata()?;
        let damaged = || Error::new(ErrorKind::Io, format!("{} is damaged", self.root.join(METADATA).display()));
        let all = root["consolidated_metadata"]["metadata"].as_object().ok_or_else(damaged)?;
        let of_texts = |(path, metadata): (&String, &Value)| StoredTexts::of_metadata(path, metadata);
        self.texts = all.iter().filter_map(of_texts).collect();
        let arrays = all.iter().filter(|(_, metadata)| metadata["node_type"] == "array");
        let arrays = arrays.filter(|array| of_texts(*array).is_none());
        let arrays = arrays.map(|(path, metadata)| StoredArray::of_metadata(path, metadata).ok_or_else(damaged));
        let arrays: Vec<StoredArray> = arrays.collect::<Result<_, _>>()?;
        (self.of_draws, self.others) = arrays.into_iter().partition(|array| {
            let axes: Vec<&str> = array.axes.iter().take(2).map(String::as_str).collect();
            axes == ["chain", "draw"]
        });
        Ok(())
    }

    /// Forgets all that there is of a block, so that nothing of it is read again.
    ///
    /// # Errors
    /// Where files cannot be removed.
    pub fn clear(&self, block: &ChainBlock) -> Result<(), Error> {
        // First, so that whoever is killed here has nothing that says otherwise.
        self.remove(&states_file(block.number))?;
        self.along_chains().try_for_each(|array| self.remove(&array.block_file(block.number)).map(drop))?;
        self.of_draws.iter().try_for_each(|array| {
            let path = self.root.join(format!("{}/c/{}", array.path, block.number));
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::new(ErrorKind::Io, format!("cannot remove {}: {error}", path.display())))
                }
                _ => Ok(()),
            }
        })
    }

    fn metadata(&self) -> Result<Value, Error> {
        let path = self.root.join(METADATA);
        let text = fs::read(&path)
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display())))?;
        serde_json::from_slice(&text)
            .map_err(|error| Error::new(ErrorKind::Io, format!("{} is damaged: {error}", path.display())))
    }

    /// How far the chains of all blocks are.
    ///
    /// # Errors
    /// As [`states`](Self::states).
    pub fn all_states(&self) -> Result<Vec<BlockStates>, Error> {
        self.blocks(&(0..self.plan.chains))?.iter().map(|block| self.states(block)).collect()
    }

    /// The same, but that chains of which that cannot be read count as not begun: who runs others leaves them to whoever
    /// runs them.
    ///
    /// # Errors
    /// None for a plan that has chains.
    pub fn known_states(&self) -> Result<Vec<BlockStates>, Error> {
        let known = |block: &ChainBlock| self.states(block).unwrap_or_else(|_| BlockStates::start(block.chains.len()));
        Ok(self.blocks(&(0..self.plan.chains))?.iter().map(known).collect())
    }

    /// The arrays along chains and draws.
    pub fn of_draws(&self) -> &[StoredArray] {
        &self.of_draws
    }

    /// Writes an array that has one chunk.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_whole(&self, of: &StoredArray, values: &Array) -> Result<(), Error> {
        let mut chunk = of.empty_chunk();
        chunk.put(0, values, 0, values.ty().elements());
        replace(&self.root.join(of.only_file()), &chunk.file())
    }

    /// Writes texts that stand along an axis of a group, and tells of them when the arrays are told next.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub fn put_texts(&mut self, group: &str, axis: &str, texts: &[String]) -> Result<(), Error> {
        let of = StoredTexts::of(group, axis, texts);
        of.write(&self.root, texts)?;
        self.texts.retain(|there| there.path != of.path);
        self.texts.push(of);
        Ok(())
    }

    /// Writes values of chains of a block, `(chain, place in the values)`, where an array has an axis of chains and none of
    /// draws.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put_chains(&self, of: &StoredArray, block: usize, values: &[(usize, Array)]) -> Result<(), Error> {
        let size: usize = of.shape[1..].iter().product();
        let file = of.block_file(block);
        let mut chunk = of.read_chunk(&self.root, &file)?.unwrap_or_else(|| of.empty_chunk());
        for (chain, value) in values {
            chunk.put(chain * size, value, 0, size);
        }
        replace(&self.root.join(file), &chunk.file())
    }

    /// Writes rows of an array along chains and draws.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(crate) fn put_rows(
        &self,
        of: &StoredArray,
        block: usize,
        pieces: &[Piece],
        values: &Array,
    ) -> Result<(), Error> {
        let (rows, event) = (of.rows(), of.event());
        // By chunk: what goes into it.
        let mut parts: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for piece in pieces {
            let mut piece = *piece;
            while piece.count > 0 {
                let count = piece.count.min(rows - piece.row % rows);
                parts.entry(piece.row / rows).or_default().push(Piece { count, ..piece });
                piece = Piece { row: piece.row + count, from: piece.from + count, count: piece.count - count, ..piece };
            }
        }
        for (at, pieces) in parts {
            let file = of.chunk_file(block, at);
            let is_whole = pieces.iter().map(|piece| piece.count).sum::<usize>() == rows * of.chunk[0];
            let there = if is_whole { None } else { of.read_chunk(&self.root, &file)? };
            let mut chunk = there.unwrap_or_else(|| of.empty_chunk());
            for piece in pieces {
                let to = (piece.chain * rows + piece.row % rows) * event;
                chunk.put(to, values, piece.from * event, piece.count * event);
            }
            replace(&self.root.join(file), &chunk.file())?;
        }
        Ok(())
    }

    /// How far the chains of a block are.
    ///
    /// # Errors
    /// Where the file cannot be read, or is damaged.
    pub fn states(&self, block: &ChainBlock) -> Result<BlockStates, Error> {
        let states = BlockStates::read(&self.root.join(states_file(block.number)))?;
        let states = states.unwrap_or_else(|| BlockStates::start(block.chains.len()));
        match states.lanes.len() == block.chains.len() {
            true => Ok(states),
            false => {
                let message = format!("{} is of other chains", self.root.join(states_file(block.number)).display());
                Err(Error::new(ErrorKind::Io, message))
            }
        }
    }

    /// Says how far the chains of a block are: after this, their rows count.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn set_states(&self, block: usize, states: &BlockStates) -> Result<(), Error> {
        states.write(&self.root.join(states_file(block)))
    }

    /// What the chains of a block have learnt after so many iterations of a warmup that is pooled; nothing where they are not so
    /// far, or it was not told yet.
    ///
    /// # Errors
    /// Where the file cannot be read, or is damaged.
    pub fn learnt(&self, iteration: u64, block: usize) -> Result<Option<Vec<u64>>, Error> {
        let path = self.root.join(learnt_file(iteration, block));
        let mut bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))),
        };
        let sum = bytes.split_off(bytes.len().saturating_sub(4));
        let (words, rest) = bytes.as_chunks::<8>();
        if words.is_empty() || !rest.is_empty() || crc32c::crc32c(&bytes).to_le_bytes()[..] != sum[..] {
            return Err(Error::new(ErrorKind::Io, format!("{} is damaged: remove it", path.display())));
        }
        Ok(Some(words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }

    /// Tells it.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn set_learnt(&self, iteration: u64, block: usize, words: &[u64]) -> Result<(), Error> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        replace(&self.root.join(learnt_file(iteration, block)), &bytes)
    }

    /// Whether all that the states of a block name is on disk as it was written; if not, what is wrong.
    pub fn damage(&self, block: &ChainBlock, states: &BlockStates) -> Option<String> {
        let check = |array: &StoredArray, file: String| match array.read_chunk(&self.root, &file) {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!("{} is missing", self.root.join(file).display())),
            Err(error) => Some(error.to_string()),
        };
        let rows = self.of_draws.iter().flat_map(|array| {
            let chunks = Self::rows_there(array, states).div_ceil(array.rows());
            (0..chunks).filter_map(move |at| check(array, array.chunk_file(block.number, at)))
        });
        let adapted = self.along_chains().filter(|_| states.has_begun());
        rows.chain(adapted.filter_map(|array| check(array, array.block_file(block.number)))).next()
    }

    /// Rows of an array that the states of a block name.
    fn rows_there(array: &StoredArray, states: &BlockStates) -> usize {
        let of = |lane: &super::LaneProgress| if array.path.starts_with("warmup") { lane.states } else { lane.draws };
        states.lanes.iter().map(of).max().unwrap_or(0) as usize
    }

    /// Removes what there is of a block that no state names: it may be written in part, and is written again.
    ///
    /// # Errors
    /// Where they cannot be removed.
    pub fn trim(&self, block: &ChainBlock, states: &BlockStates) -> Result<(), Error> {
        for array in &self.of_draws {
            let first = Self::rows_there(array, states).div_ceil(array.rows());
            for at in first.. {
                if !self.remove(&array.chunk_file(block.number, at))? {
                    break;
                }
            }
        }
        if !states.has_begun() {
            self.along_chains().try_for_each(|array| self.remove(&array.block_file(block.number)).map(drop))?;
        }
        Ok(())
    }

    /// Removes a file; gives whether it was there.
    fn remove(&self, file: &str) -> Result<bool, Error> {
        let path = self.root.join(file);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::new(ErrorKind::Io, format!("cannot remove {}: {error}", path.display()))),
        }
    }

    /// The arrays along chains alone.
    fn along_chains(&self) -> impl Iterator<Item = &StoredArray> {
        self.others.iter().filter(|array| array.path.starts_with("adaptation/") && !array.path.ends_with("/chain"))
    }

    /// Draws, and states of warmup, that all chains of these blocks have: those that trapped are left out.
    pub fn extents<'a>(states: impl Iterator<Item = &'a BlockStates>) -> (usize, usize) {
        let lanes = states.flat_map(|states| &states.lanes).filter(|lane| lane.trap.is_none());
        let least =
            |(draws, warmup): (u64, u64), lane: &super::LaneProgress| (draws.min(lane.draws), warmup.min(lane.states));
        match lanes.fold((u64::MAX, u64::MAX), least) {
            (u64::MAX, _) => (0, 0),
            (draws, warmup) => (draws as usize, warmup as usize),
        }
    }

    /// Writes the metadata: so many draws and states of warmup are there, of all chains.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub fn publish(&self, (draws, warmup): (usize, usize), status: RunStatus) -> Result<(), Error> {
        let group = |attributes: Value| json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        let mut all = Map::new();
        let has_sets = self.plan.data_sets.is_some();
        let arrays = self.of_draws.iter().map(|array| (array, true)).chain(self.others.iter().map(|a| (a, false)));
        for (array, of_draws) in arrays {
            let name = array.path.split('/').next().unwrap_or_default();
            // Where xarray looks for coordinates that are none of their own axis.
            let more = if has_sets && of_draws { json!({"coordinates": DATA_SET}) } else { json!({}) };
            all.entry(name).or_insert_with(|| group(more));
        }
        for array in &self.of_draws {
            let rows = if array.path.starts_with("warmup") { warmup } else { draws };
            all.insert(array.path.clone(), array.metadata(Some(rows)));
        }
        for array in &self.others {
            // A coordinate has the extent of what it belongs to.
            let mut metadata = array.metadata(None);
            if array.axes == ["draw"] && array.path.ends_with("/draw") {
                let rows = if array.path.starts_with("warmup") { warmup } else { draws };
                metadata["shape"] = json!([rows]);
            }
            all.insert(array.path.clone(), metadata);
        }
        all.extend(self.texts.iter().map(|texts| (texts.path.clone(), texts.metadata())));
        let write = |path: &str, value: &Value| {
            replace(&self.root.join(path), &serde_json::to_vec(value).expect("numbers and texts are JSON"))
        };
        // The extents last, and of all arrays at once: readers take those of the root.
        for (path, metadata) in &all {
            write(&format!("{path}/zarr.json"), metadata)?;
        }
        let RunPlan { model_name, seed, first_lane, chains, warmup, draws, metric, settings, .. } = &self.plan;
        let mut root = group(json!({
            "inference_library": "autobatch",
            "inference_library_version": self.plan.autobatch,
            "creation_library": "autobatch",
            "status": status.name(),
            "model_name": model_name,
            "seed": seed,
            "first_lane": first_lane,
            "chains": chains,
            "tuning_steps": warmup,
            "asked_draws": draws,
            "metric": metric,
            "settings": settings,
            "thin": 1,
        }));
        if let Some(sets) = self.plan.data_sets {
            root["attributes"]["data_sets"] = json!(sets);
        }
        // Where readers look for them.
        for (name, value) in settings.iter().filter(|(name, _)| TOLD.contains(&name.as_str())) {
            root["attributes"][name] = json!(value);
        }
        root["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": all});
        write(METADATA, &root)
    }

    /// Reads the values of these chains of an array along chains.
    ///
    /// # Errors
    /// Where a chunk is damaged.
    pub fn read_chains(&self, name: &str, chains: &[usize]) -> Result<Vec<Array>, Error> {
        let Some(of) = self.others.iter().find(|array| array.path == name) else { return Ok(vec![]) };
        chains
            .iter()
            .filter_map(|chain| {
                let file = of.block_file(chain / BLOCK);
                let chunk = of.read_chunk(&self.root, &file).transpose()?;
                Some(chunk.map(|chunk| of.chain_of(&chunk, chain % BLOCK)))
            })
            .collect()
    }

    /// Removes what processes that were killed have left: no other may write to the store.
    pub fn clean(&self) {
        remove_parts(&self.root);
    }

    /// Waits until all that was written is on disk.
    pub fn sync(&self) {
        #[cfg(target_os = "linux")]
        if let Ok(folder) = File::open(&self.root) {
            // What a file system does not do is no failure of the run: the files are there for every process.
            let _ = nix::unistd::syncfs(&folder);
        }
    }
}

/// Where it stands what the chains of a block have learnt after so many iterations.
fn learnt_file(iteration: u64, block: usize) -> String {
    format!("{OWN}/learnt/{iteration}/{block}")
}

/// The file of the states of a block.
fn states_file(block: usize) -> String {
    format!("{OWN}/state/{block}")
}

/// Removes the files below a folder that never got their names.
fn remove_parts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_parts(&path);
        } else if entry.file_name().to_string_lossy().starts_with('.') && path.to_string_lossy().ends_with(PART) {
            // It takes room, and is in nobody's way.
            let _ = fs::remove_file(&path);
        }
    }
}

/// The coordinates of an axis, as an array of a group.
pub fn coordinate(group: &str, axis: &str, values: Vec<i64>) -> (StoredArray, Array) {
    let values = Array::int([values.len()], values);
    let array = StoredArray::whole(format!("{group}/{axis}"), &values, StoredElement::Int64, vec![axis.to_owned()]);
    (array, values)
}
