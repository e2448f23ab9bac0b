//! The shared values of a run, with what a back end has made of them.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use crate::types::Array;

/// One array for every shared value of a program, in order. They stay as they are, so that what a back end makes of them
/// for a run, such as a copy in its own layout, serves the next run with the same values. A clone shares both.
#[derive(Clone)]
pub struct SharedArrays(Arc<Inner>);

struct Inner {
    arrays: Vec<Array>,
    /// The last that were made.
    made: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// So many are kept: one for each precision.
const KEPT: usize = 2;

impl SharedArrays {
    /// What was made of them before and `serves`, or what is made now.
    pub(crate) fn made<T: Any + Send + Sync>(
        &self,
        serves: impl Fn(&T) -> bool,
        make: impl FnOnce(&[Array]) -> T,
    ) -> Arc<T> {
        let made = || self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = made().iter().find_map(|made| Arc::clone(made).downcast::<T>().ok().filter(|made| serves(made)));
        known.unwrap_or_else(|| {
            // It may take long: nobody waits for it.
            let new = Arc::new(make(&self.0.arrays));
            let mut made = made();
            if made.len() == KEPT {
                made.remove(0);
            }
            made.push(Arc::<T>::clone(&new));
            new
        })
    }
}

impl From<Vec<Array>> for SharedArrays {
    fn from(arrays: Vec<Array>) -> Self {
        Self(Arc::new(Inner { arrays, made: Mutex::default() }))
    }
}

impl Deref for SharedArrays {
    type Target = [Array];

    fn deref(&self) -> &[Array] {
        &self.0.arrays
    }
}

impl fmt::Debug for SharedArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.arrays.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_serves_until_it_does_not_and_other_values_make_their_own() {
        let values = SharedArrays::from(vec![Array::real([2], vec![1.0, 2.0])]);
        let count = |values: &SharedArrays, key: u32| {
            let of = values.made(|(k, _): &(u32, usize)| *k == key, |arrays| (key, arrays.len()));
            Arc::as_ptr(&of) as usize
        };
        let first = count(&values, 0);
        assert_eq!((count(&values, 0), count(&values.clone(), 0)), (first, first));
        // Another kind, and then there is no place for the first.
        assert_ne!(count(&values, 1), first);
        assert_eq!(*values.made(|_: &String| true, |_| "text".to_owned()), "text");
        assert_eq!(values.0.made.lock().expect("nobody panics").len(), KEPT);
        let other = SharedArrays::from(values.to_vec());
        assert_eq!(other.0.made.lock().expect("nobody panics").len(), 0);
    }
}
