//! The memory of one stack variable for all lanes of a shard: what lies below the cached tops.
//!
//! A *level* is laid out like a lane buffer, `[element][lane]`. Level `h` holds, for each lane that is that high, the
//! value with `h` values below it, so a push or a pop touches the active lanes only, and when all lanes are equally high
//! it is the copy of one block of memory. Memory grows by whole levels, by at least half of what there is, and is kept
//! for reuse.

use std::collections::TryReserveError;

use super::mask::for_each_lane;

/// Why a stack could not do what was asked. It is unchanged then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StackError {
    /// A lane has nothing to pop.
    Empty,
    /// No memory for another level.
    NoMemory,
}

impl From<TryReserveError> for StackError {
    fn from(_: TryReserveError) -> Self {
        StackError::NoMemory
    }
}

/// The active lanes of a push or pop, and where their values stand in the buffer of tops.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The active columns of the buffer of tops.
    pub mask: &'a [u64],
    /// Its width.
    pub width: usize,
    /// The lane of each column; `None` when column `l` is lane `l`.
    pub lanes: Option<&'a [u32]>,
    /// Whether all lanes of the shard are active, each in its own column.
    pub all: bool,
}

impl Columns<'_> {
    #[inline]
    fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        match self.lanes {
            None => for_each_lane(self.mask, |column| f(column, column)),
            Some(lanes) => for_each_lane(self.mask, |column| f(column, lanes[column] as usize)),
        }
    }
}

/// Heights behind that of the last lane: generated code reads eight at a time.
const HEIGHT_PADDING: usize = 8;

/// The memory of a stack in the hands of somebody else.
#[derive(Debug)]
pub struct Opened<'a, T> {
    /// Its levels.
    pub memory: &'a mut [T],
    /// By lane.
    pub heights: &'a mut [u32],
    /// Values pushed.
    pub pushes: u64,
    /// Largest height that any lane had.
    pub highest: u32,
}

/// One stack for each lane.
#[derive(Clone, Debug)]
pub struct LaneStack<T> {
    elements: usize,
    width: usize,
    /// What memory holds before it is pushed to.
    zero: T,
    memory: Vec<T>,
    heights: Vec<u32>,
    /// Largest height that any lane had.
    highest: u32,
    pushes: u64,
    /// Most elements that memory may hold.
    most: usize,
    /// For the push or pop at hand: column, and position of its first element in `memory`.
    places: Vec<(u32, usize)>,
}

impl<T: Copy> LaneStack<T> {
    /// Empty stacks of values of `elements` elements for `width` lanes.
    pub fn new(elements: usize, width: usize, zero: T) -> Self {
        Self {
            elements,
            width,
            zero,
            memory: Vec::new(),
            heights: vec![0; width + HEIGHT_PADDING],
            highest: 0,
            pushes: 0,
            most: usize::MAX,
            places: Vec::new(),
        }
    }
    /// Number of values of a lane (below its cached top).
    pub fn height(&self, lane: usize) -> usize {
        self.heights[lane] as usize
    }
    /// Empties the stack of a lane.
    pub fn reset(&mut self, lane: usize) {
        self.heights[lane] = 0;
    }
    /// Largest height that any lane had.
    pub fn highest(&self) -> usize {
        self.highest as usize
    }
    /// Memory that is held, in elements.
    pub fn memory(&self) -> usize {
        self.memory.len()
    }
    /// Bytes of one element.
    pub fn element_bytes(&self) -> usize {
        size_of::<T>()
    }
    /// From now on memory does not grow beyond so many elements; what is held already stays.
    pub fn limit_memory(&mut self, elements: usize) {
        self.most = elements;
    }
    /// Values pushed, summed over lanes.
    pub fn pushes(&self) -> u64 {
        self.pushes
    }

    /// Puts the value of each active column of `top` on the stack of its lane.
    pub fn push(&mut self, top: &[T], columns: Columns<'_>) -> Result<(), StackError> {
        let level = self.elements * self.width;
        if columns.all && self.level_of_all().is_some() {
            let height = self.heights.first().copied().unwrap_or(0);
            self.reserve(height)?;
            let at = height as usize * level;
            self.memory[at..at + level].copy_from_slice(&top[..level]);
            self.heights[..self.width].fill(height + 1);
            self.pushes += self.width as u64;
            return Ok(());
        }
        self.reserve_for(columns)?;
        if self.elements == 1 {
            self.push_scalars(columns, |column| top[column]);
            return Ok(());
        }
        self.place_pushes(columns);
        for e in 0..self.elements {
            let (row, from) = (e * self.width, &top[e * columns.width..]);
            for (column, place) in &self.places {
                self.memory[place + row] = from[*column as usize];
            }
        }
        Ok(())
    }

    /// Puts one value, given by its elements, on the stack of the lane of each active column.
    pub fn push_value(&mut self, value: &[T], columns: Columns<'_>) -> Result<(), StackError> {
        if columns.all && self.level_of_all().is_some() {
            let height = self.heights[0];
            self.reserve(height)?;
            let at = height as usize * self.elements * self.width;
            for (row, value) in self.memory[at..].chunks_exact_mut(self.width).zip(&value[..self.elements]) {
                row.fill(*value);
            }
            self.heights[..self.width].fill(height + 1);
            self.pushes += self.width as u64;
            return Ok(());
        }
        self.reserve_for(columns)?;
        if let [value] = value[..self.elements] {
            self.push_scalars(columns, |_| value);
            return Ok(());
        }
        self.place_pushes(columns);
        for (e, value) in value[..self.elements].iter().enumerate() {
            for (_, place) in &self.places {
                self.memory[place + e * self.width] = *value;
            }
        }
        Ok(())
    }

    /// Makes room for one more value of each active column.
    fn reserve_for(&mut self, columns: Columns<'_>) -> Result<(), StackError> {
        let mut tallest = None;
        columns.for_each(|_, lane| tallest = tallest.max(Some(self.heights[lane])));
        tallest.map_or(Ok(()), |tallest| self.reserve(tallest))
    }

    /// Pushes values of one element, for which there is room, in one go over the lanes.
    fn push_scalars(&mut self, columns: Columns<'_>, value: impl Fn(usize) -> T) {
        let (heights, memory, width) = (&mut self.heights, &mut self.memory, self.width);
        let mut pushed = 0;
        columns.for_each(|column, lane| {
            memory[heights[lane] as usize * width + lane] = value(column);
            heights[lane] += 1;
            pushed += 1;
        });
        self.pushes += pushed;
    }

    /// Makes the stacks of the active columns, for which there is room, higher by one and notes where their new values go.
    fn place_pushes(&mut self, columns: Columns<'_>) {
        let level = self.elements * self.width;
        let (heights, places) = (&mut self.heights, &mut self.places);
        places.clear();
        columns.for_each(|column, lane| {
            places.push((column as u32, heights[lane] as usize * level + lane));
            heights[lane] += 1;
        });
        self.pushes += self.places.len() as u64;
    }

    /// Takes the last value of each active column's lane off its stack, into `top`.
    pub fn pop(&mut self, top: &mut [T], columns: Columns<'_>) -> Result<(), StackError> {
        let level = self.elements * self.width;
        if columns.all
            && let Some(height) = self.level_of_all()
        {
            let below = height.checked_sub(1).ok_or(StackError::Empty)?;
            let at = below as usize * level;
            top[..level].copy_from_slice(&self.memory[at..at + level]);
            self.heights[..self.width].fill(below);
            return Ok(());
        }
        let mut empty = false;
        columns.for_each(|_, lane| empty |= self.heights[lane] == 0);
        if empty {
            return Err(StackError::Empty);
        }
        if self.elements == 1 {
            let (heights, memory, width) = (&mut self.heights, &self.memory, self.width);
            columns.for_each(|column, lane| {
                heights[lane] -= 1;
                top[column] = memory[heights[lane] as usize * width + lane];
            });
            return Ok(());
        }
        let (heights, places) = (&mut self.heights, &mut self.places);
        places.clear();
        columns.for_each(|column, lane| {
            heights[lane] -= 1;
            places.push((column as u32, heights[lane] as usize * level + lane));
        });
        for e in 0..self.elements {
            let (row, to) = (e * self.width, &mut top[e * columns.width..]);
            for (column, place) in &self.places {
                to[*column as usize] = self.memory[place + row];
            }
        }
        Ok(())
    }

    /// Hands the memory over, with room for `pushes` more values in each lane and `padding` elements more.
    pub fn open(&mut self, pushes: usize, padding: usize) -> Result<Opened<'_, T>, StackError> {
        let highest = self.highest;
        let levels = (highest as usize).checked_add(pushes).ok_or(StackError::NoMemory)?;
        if let Some(top) = levels.checked_sub(1) {
            self.reserve(u32::try_from(top).map_err(|_| StackError::NoMemory)?)?;
        }
        self.highest = highest;
        let needed = levels * self.elements * self.width + padding;
        if self.memory.len() < needed {
            self.memory.try_reserve(needed - self.memory.len())?;
            self.memory.resize(needed, self.zero);
        }
        Ok(Opened { memory: &mut self.memory, heights: &mut self.heights, pushes: self.pushes, highest })
    }
    /// What was handed over is as it was left: values pushed, and the largest height.
    pub fn close(&mut self, pushes: u64, highest: u32) {
        self.pushes = pushes;
        self.highest = highest;
    }

    /// The height of all lanes, if they are equally high.
    fn level_of_all(&self) -> Option<u32> {
        let first = *self.heights[..self.width].first()?;
        self.heights[..self.width].iter().all(|h| *h == first).then_some(first)
    }

    /// Makes room for level `height`.
    fn reserve(&mut self, height: u32) -> Result<(), StackError> {
        // heights are counted in 32 bits
        if height == u32::MAX {
            return Err(StackError::NoMemory);
        }
        let levels = height as usize + 1;
        let needed = (levels).checked_mul(self.elements * self.width).ok_or(StackError::NoMemory)?;
        if self.memory.len() < needed {
            if needed > self.most {
                return Err(StackError::NoMemory);
            }
            let grown = needed.max(self.memory.len() + self.memory.len() / 2).min(self.most);
            if self.memory.try_reserve_exact(grown - self.memory.len()).is_err() {
                self.memory.try_reserve_exact(needed - self.memory.len())?;
            }
            self.memory.resize(self.memory.capacity().min(grown).max(needed), self.zero);
        }
        self.highest = self.highest.max(height + 1);
        Ok(())
    }
}

impl<T: Copy> LaneStack<T> {
    /// Puts one value of one element on the stack of one lane.
    pub fn push_lane(&mut self, lane: usize, value: T) -> Result<(), StackError> {
        let height = self.heights[lane];
        self.reserve(height)?;
        self.memory[height as usize * self.width + lane] = value;
        self.heights[lane] = height + 1;
        self.pushes += 1;
        Ok(())
    }
    /// Takes one value of one element off the stack of one lane.
    pub fn pop_lane(&mut self, lane: usize) -> Option<T> {
        let below = self.heights[lane].checked_sub(1)?;
        self.heights[lane] = below;
        Some(self.memory[below as usize * self.width + lane])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is done to all stacks at once, with a seed for masks and values.
    #[derive(Clone, Copy, Debug)]
    enum Action {
        Push(u64),
        PushValue(u64),
        Pop(u64),
        Update(u64),
        Reset(u64),
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            4 => any::<u64>().prop_map(Action::Push),
            2 => any::<u64>().prop_map(Action::PushValue),
            4 => any::<u64>().prop_map(Action::Pop),
            2 => any::<u64>().prop_map(Action::Update),
            1 => any::<u64>().prop_map(Action::Reset),
        ]
    }

    /// A mask of `width` lanes drawn from a seed: everything, nothing, or about half.
    fn mask_of(seed: u64, width: usize) -> Vec<u64> {
        let mut words = crate::exec::LaneMask::all(width).words().to_vec();
        if !seed.is_multiple_of(4) {
            for (i, word) in words.iter_mut().enumerate() {
                *word &= (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            }
        }
        words
    }

    struct Model {
        /// For each lane its values, the top last.
        lanes: Vec<Vec<Vec<i64>>>,
        stack: LaneStack<i64>,
        top: Vec<i64>,
        width: usize,
        elements: usize,
        gathered: bool,
    }

    impl Model {
        fn new(width: usize, elements: usize, gathered: bool) -> Self {
            Self {
                lanes: vec![vec![vec![0; elements]]; width],
                stack: LaneStack::new(elements, width, 0),
                top: vec![0; width * elements],
                width,
                elements,
                gathered,
            }
        }
        /// Runs `f` on the stack with columns that are the lanes, or the active lanes compacted.
        fn with_columns<O>(
            &mut self,
            mask: &[u64],
            f: impl FnOnce(&mut LaneStack<i64>, &mut [i64], Columns<'_>) -> O,
        ) -> O {
            let lanes: Vec<u32> = crate::exec::mask::lanes_of(mask).map(|l| l as u32).collect();
            let all = lanes.len() == self.width;
            if !self.gathered {
                let columns = Columns { mask, width: self.width, lanes: None, all };
                return f(&mut self.stack, &mut self.top, columns);
            }
            let (n, w) = (lanes.len(), self.width);
            let at = |e: usize, i: usize| e * w + lanes[i] as usize;
            let mut dense = vec![0; n * self.elements];
            for (e, i) in (0..self.elements).flat_map(|e| (0..n).map(move |i| (e, i))) {
                dense[e * n + i] = self.top[at(e, i)];
            }
            let full = crate::exec::LaneMask::all(n);
            let columns = Columns { mask: full.words(), width: n, lanes: Some(&lanes), all: false };
            let out = f(&mut self.stack, &mut dense, columns);
            for (e, i) in (0..self.elements).flat_map(|e| (0..n).map(move |i| (e, i))) {
                self.top[at(e, i)] = dense[e * n + i];
            }
            out
        }
        fn run(&mut self, action: Action) {
            let seed = match action {
                Action::Push(s) | Action::PushValue(s) | Action::Pop(s) | Action::Update(s) | Action::Reset(s) => s,
            };
            let mask = mask_of(seed, self.width);
            let active: Vec<usize> = crate::exec::mask::lanes_of(&mask).collect();
            match action {
                Action::Push(_) => {
                    self.with_columns(&mask, |stack, top, columns| stack.push(top, columns)).unwrap();
                    for lane in active {
                        let top = self.lanes[lane].last().unwrap().clone();
                        self.lanes[lane].push(top);
                    }
                }
                Action::PushValue(_) => {
                    // under the cached top, as if it had been the top when the stack was pushed
                    let value: Vec<i64> = (0..self.elements).map(|e| (seed as i64).wrapping_add(e as i64)).collect();
                    self.with_columns(&mask, |stack, _, columns| stack.push_value(&value, columns)).unwrap();
                    for lane in active {
                        let top = self.lanes[lane].pop().unwrap();
                        self.lanes[lane].extend([value.clone(), top]);
                    }
                }
                Action::Pop(_) => {
                    let result = self.with_columns(&mask, |stack, top, columns| stack.pop(top, columns));
                    let empty = active.iter().any(|l| self.lanes[*l].len() == 1);
                    assert_eq!(result.is_err(), empty, "an error exactly when a lane is empty");
                    if !empty {
                        active.iter().for_each(|l| drop(self.lanes[*l].pop()));
                    }
                }
                Action::Update(_) => {
                    for lane in active {
                        for e in 0..self.elements {
                            let value = (seed as i64).wrapping_add((lane * 31 + e) as i64);
                            self.top[e * self.width + lane] = value;
                            self.lanes[lane].last_mut().unwrap()[e] = value;
                        }
                    }
                }
                Action::Reset(_) => {
                    if let Some(lane) = active.first() {
                        self.stack.reset(*lane);
                        let top = self.lanes[*lane].pop().unwrap();
                        self.lanes[*lane] = vec![top];
                    }
                }
            }
        }
        fn check(&self) {
            for (lane, values) in self.lanes.iter().enumerate() {
                assert_eq!(self.stack.height(lane), values.len() - 1);
                let top = values.last().unwrap();
                (0..self.elements).for_each(|e| assert_eq!(self.top[e * self.width + lane], top[e]));
            }
        }
    }

    proptest! {
        #[test]
        fn stacks_behave_like_a_list_of_lists(
            width in prop_oneof![Just(1usize), 2usize..10, Just(64), 60usize..140],
            elements in 0usize..4,
            gathered in any::<bool>(),
            actions in prop::collection::vec(action(), 1..200),
        ) {
            let mut model = Model::new(width, elements, gathered);
            for action in actions {
                model.run(action);
                model.check();
            }
        }
    }

    #[test]
    fn a_thousand_levels_come_back_in_order() {
        let mut stack = LaneStack::new(1, 3, 0);
        for i in 0..1000 {
            stack.push_lane(1, i).unwrap();
        }
        assert_eq!((stack.highest(), stack.height(0), stack.pushes()), (1000, 0, 1000));
        for i in (0..1000).rev() {
            assert_eq!(stack.pop_lane(1), Some(i));
        }
        assert_eq!(stack.pop_lane(1), None);
    }
}
