//! Elements that lie about in several arrays: one array of those that occur, and where each is in it. Arrays that are put
//! together and read more than once.

use std::sync::Arc;

use indexmap::IndexMap;

use super::group::Found;
use super::pattern::Axes;
use super::{Code, Container, Emitter, Written};
use crate::base::HashMap;
use crate::stan::value::Elem;

/// From so many stretches on, several for each array, an array is gathered: the text and what the machine does grow with
/// the number of stretches.
const MANY_STRETCHES: usize = 8;

/// What an array that was gathered is put together of: where its elements are, or the bits of known ones.
pub(super) type Gathered = Vec<(usize, u64)>;

/// Arrays of this shape that are put together of elements.
pub(super) type Rows = (Vec<Arc<Vec<Elem>>>, Vec<usize>);

/// Where known elements are: in no array.
const KNOWN: usize = usize::MAX;

impl Emitter<'_> {
    /// Arrays that are put together of many stretches of few arrays, gathered out of one with all elements that occur;
    /// `None` where stretches are few.
    pub(super) fn gathered(
        &mut self,
        lists: &[Arc<Vec<Elem>>],
        runs: &[(Found, usize)],
        axes: &Axes,
    ) -> Written<Option<Code>> {
        if runs.len() < MANY_STRETCHES || !self.loops.is_empty() {
            return Ok(None);
        }
        let is_int = |elem: &Elem| match elem {
            Elem::Int(_) => true,
            Elem::Real(_) => false,
            Elem::Of(node, _) => self.node(*node).int,
        };
        let all_int = lists.iter().flat_map(|list| list.iter()).all(is_int);
        let mut at: Gathered = Vec::with_capacity(lists.len() * lists[0].len());
        for elem in lists.iter().flat_map(|list| list.iter()) {
            at.push(match elem {
                Elem::Of(node, flat) => {
                    let Some((container, index)) = self.places.get(*node) else { return Ok(None) };
                    let size: usize = self.containers[container].shape.iter().product();
                    (container, (index * size) as u64 + u64::from(*flat))
                }
                Elem::Int(i) if all_int => (KNOWN, *i as u64),
                Elem::Int(i) => (KNOWN, (*i as f64).to_bits()),
                Elem::Real(x) => (KNOWN, x.to_bits()),
            });
        }
        let mut pool: Gathered = at.clone();
        pool.sort_unstable();
        pool.dedup();
        let arrays = 1 + pool.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        if runs.len() < 2 * arrays {
            return Ok(None);
        }
        let pooled = self.pooled(&pool, all_int)?;
        let number: HashMap<(usize, u64), i64> = pool.iter().copied().zip(0..).collect();
        let flat: Vec<i64> = at.iter().map(|place| number[place]).collect();
        if lists.len() > 1 {
            return Ok(Some(self.picked(pooled, &flat, lists[0].len(), axes)));
        }
        // What stands outside of all comprehensions is read again as a rule.
        let container = match self.pools.get(&at) {
            Some(container) => *container,
            None => {
                let code = self.picked(pooled, &flat, at.len(), axes);
                let container = self.named(code.text, vec![], vec![at.len()]);
                self.pools.insert(at, container);
                container
            }
        };
        Ok(Some(Code::atom(self.containers[container].name.clone())))
    }

    /// The array of these elements, each once and in order.
    fn pooled(&mut self, pool: &[(usize, u64)], all_int: bool) -> Written<usize> {
        if let Some(container) = self.pools.get(pool) {
            return Ok(*container);
        }
        let mut parts: Vec<String> = Vec::new();
        for part in pool.chunk_by(|a, b| a.0 == b.0) {
            let (container, len) = (part[0].0, part.len());
            let (code, extents) = if container == KNOWN {
                let known = |bits: u64| if all_int { Elem::Int(bits as i64) } else { Elem::Real(f64::from_bits(bits)) };
                let elems = part.iter().map(|(_, bits)| known(*bits)).collect();
                self.known_stretch(&[Arc::new(elems)], 0, len, &Axes::default())?
            } else {
                let flat: Vec<i64> = part.iter().map(|(_, at)| *at as i64).collect();
                self.stretch_of(container, &flat, len, &Axes::default())?
            };
            parts.push(super::read::reshaped(&code, &extents, &[len]).text);
        }
        let text = if let [one] = &parts[..] { one.clone() } else { format!("concat({})", parts.join(", ")) };
        let container = self.named(text, vec![], vec![pool.len()]);
        self.pools.insert(pool.to_vec(), container);
        Ok(container)
    }

    /// Elements of an array by their numbers, so many in a row.
    fn picked(&mut self, container: usize, flat: &[i64], len: usize, axes: &Axes) -> Code {
        let var = format!("{}k{}", self.prefix, axes.vars.len());
        let element = self.element(container, flat, 1, &axes.with(&var, len));
        Code::atom(format!("[{} for {var} in 0..{len}]", element.text))
    }

    /// Arrays that are put together of several stretches, each of which stands in many places: each is put together once.
    pub(super) fn repeated(
        &mut self,
        lists: &[Arc<Vec<Elem>>],
        runs: &[(Found, usize)],
        shape: &[usize],
        axes: &Axes,
    ) -> Written<Option<Code>> {
        if runs.len() < 2 || lists.len() < 2 || !self.loops.is_empty() {
            return Ok(None);
        }
        let mut rows: IndexMap<*const Vec<Elem>, Arc<Vec<Elem>>> = IndexMap::new();
        let which = lists.iter().map(|list| {
            let row = rows.entry(Arc::as_ptr(list));
            let at = row.index();
            row.or_insert_with(|| list.clone());
            at
        });
        let which: Vec<usize> = which.collect();
        let rows: Vec<Arc<Vec<Elem>>> = rows.into_values().collect();
        let m = rows.len();
        if 2 * m > lists.len() {
            return Ok(None);
        }
        let lead = if m > 1 { vec![m] } else { vec![] };
        let key = (rows, shape.to_vec());
        let container = match self.rows.get(&key) {
            Some(container) => *container,
            None => {
                let var = format!("{}i", self.prefix);
                let of_rows = if m > 1 { Axes::default().with(&var, m) } else { Axes::default() };
                let code = self.read_elements(&key.0, runs, shape, &of_rows)?;
                let text = if m > 1 { format!("[{} for {var} in 0..{m}]", code.text) } else { code.text };
                let container = self.named(text, lead.clone(), shape.to_vec());
                self.rows.insert(key, container);
                container
            }
        };
        let size = shape.iter().product::<usize>();
        let flat: Vec<i64> = which.iter().map(|row| (row * size) as i64).collect();
        Ok(Some(self.element(container, &flat, lead.len(), axes)))
    }

    /// A name for an array.
    fn named(&mut self, text: String, lead: Vec<usize>, shape: Vec<usize>) -> usize {
        let name = self.fresh("x");
        self.line(format!("let {name} = {text};"), None);
        self.containers.push(Container { name, lead, shape });
        self.containers.len() - 1
    }
}
