//! How far the chains of a block are on disk, and what each goes on with.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::array::replace;
use crate::base::{Loc, WrittenPlace};
use crate::program::{Error, ErrorKind};
use crate::run::{Trap, TrapKind};

/// The first bytes of a file of states.
const MAGIC: &[u8; 8] = b"abstate1";

/// Why a chain, or what is computed of a draw, ended before its end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StoredTrap {
    kind: String,
    function: String,
    line: u32,
    calls: usize,
    message: String,
    /// Where in the text of which the program was made; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    place: String,
}

impl StoredTrap {
    /// Of a trap.
    pub fn of(trap: &Trap) -> Self {
        Self {
            kind: trap.kind.name().to_owned(),
            function: trap.loc.function.to_string(),
            line: trap.loc.line,
            calls: trap.call_depth,
            message: trap.message.clone(),
            place: trap.loc.place.as_ref().map(|place| place.told.clone()).unwrap_or_default(),
        }
    }

    /// The trap, of the lane at a position.
    pub fn trap(&self, position: usize) -> Trap {
        let kind = TrapKind::named(&self.kind).unwrap_or(TrapKind::AssertFailed);
        let mut loc = Loc::new(&*self.function, self.line);
        if !self.place.is_empty() {
            loc.place = Some(Arc::new(WrittenPlace::told_as(&self.place)));
        }
        Trap { call_depth: self.calls, message: self.message.clone(), ..Trap::new(position, kind, loc) }
    }
}

/// How far a chain is, on disk.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LaneProgress {
    /// Iterations that it has made, warmup included.
    pub iteration: u64,
    /// Its draws that are on disk.
    pub draws: u64,
    /// Its states of warmup that are on disk.
    pub states: u64,
    /// Why it ended before its end.
    pub trap: Option<StoredTrap>,
    /// Seconds of warmup and of sampling.
    pub seconds: (f64, f64),
    /// Gradients of its warmup, as far as it has told.
    pub gradients: u64,
    /// The record of its state after `iteration` iterations; none at the start.
    #[serde(skip)]
    pub state: Vec<u64>,
}

/// The chains of a block.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct BlockStates {
    /// Of each, in their order.
    pub lanes: Vec<LaneProgress>,
    /// Why the model's `parameters` failed for the first draw for which they did.
    pub first_failure: Option<StoredTrap>,
    /// Its chain and its draw: in the order of chains it is the first.
    #[serde(default)]
    pub first_failed: Option<(usize, u64)>,
}

impl BlockStates {
    /// Whether a chain has made an iteration that counts.
    pub fn has_begun(&self) -> bool {
        self.lanes.iter().any(|lane| lane.iteration > 0)
    }

    /// Of so many chains that have not begun.
    pub fn start(chains: usize) -> Self {
        Self { lanes: vec![LaneProgress::default(); chains], ..Self::default() }
    }

    /// Reads them; nothing where there is no file yet.
    ///
    /// # Errors
    /// Where it cannot be read, or is not what was written.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display()))),
        };
        Self::of_bytes(&bytes)
            .map(Some)
            .ok_or_else(|| Error::new(ErrorKind::Io, format!("{} is damaged", path.display())))
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (bytes, sum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(bytes).to_le_bytes() != *sum {
            return None;
        }
        let bytes = bytes.strip_prefix(MAGIC)?;
        let (length, bytes) = bytes.split_first_chunk::<8>()?;
        let (header, mut rest) = bytes.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let (mut states, words): (Self, Vec<usize>) = serde_json::from_slice(header).ok()?;
        for (lane, count) in states.lanes.iter_mut().zip(words) {
            let (own, others) = rest.split_at_checked(count.checked_mul(8)?)?;
            lane.state = own.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            rest = others;
        }
        rest.is_empty().then_some(states)
    }

    /// Writes them.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let counts: Vec<usize> = self.lanes.iter().map(|lane| lane.state.len()).collect();
        let header = serde_json::to_vec(&(self, counts)).expect("numbers and texts are JSON");
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(header);
        bytes.extend(self.lanes.iter().flat_map(|lane| &lane.state).flat_map(|word| word.to_le_bytes()));
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        replace(path, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_told() {
        let folder = std::env::temp_dir().join(format!("autobatch-states-{}", std::process::id()));
        let path = folder.join("block");
        assert_eq!(BlockStates::read(&path).expect("nothing is no error"), None);
        let mut states = BlockStates::start(3);
        states.lanes[1] = LaneProgress { iteration: 7, draws: 2, state: vec![1, u64::MAX, 3], ..Default::default() };
        let trap = Trap::new(2, TrapKind::StepLimit, Loc::new("f", 3));
        states.lanes[2].trap = Some(StoredTrap::of(&trap));
        assert_eq!(StoredTrap::of(&trap).trap(2).to_string(), trap.to_string());
        states.lanes[2].seconds = (0.1, 1e-300);
        states.write(&path).expect("it can be written");
        assert_eq!(BlockStates::read(&path).expect("it can be read"), Some(states));
        let good = fs::read(&path).expect("it is there");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            assert_eq!(BlockStates::of_bytes(&bad), None, "byte {at}");
            assert_eq!(BlockStates::of_bytes(&good[..at]), None, "cut at {at}");
        }
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
