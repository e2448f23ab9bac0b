//! Loops over the elements of arrays.

use super::shapes;
use super::text::Writer;
use crate::backend::generator::ending::Ending;

/// Turns of a loop over elements up to which it is written out: arrays that are only read and set at known places then stay
/// in registers.
pub(super) const MOST_UNROLLED: usize = 16;

impl<T: Ending> Writer<'_, T> {
    /// A loop over elements.
    pub(super) fn each(&mut self, elements: usize, body: impl FnOnce(&mut Self, Option<&str>)) {
        match elements {
            0 => return,
            1 => return body(self, None),
            _ => {}
        }
        self.open_loop_over("e", elements);
        body(self, Some("e"));
        self.close();
    }

    /// A loop over elements, each of which takes long: a machine has its body once, since what it runs must stay in the cache
    /// of instructions.
    pub(super) fn each_at_length(&mut self, elements: usize, body: impl FnOnce(&mut Self, Option<&str>)) {
        if elements == 1 || !self.is_scheduled() {
            return self.each(elements, body);
        }
        self.line("AB_ROLLED");
        self.open(&format!("for (int e = 0; e < {elements}; e++) {{"));
        body(self, Some("e"));
        self.close();
    }

    /// A loop over elements, some of whose places are of [`shapes::indices_of_element`] of this shape.
    pub(super) fn each_of(&mut self, shape: &[usize], body: impl FnOnce(&mut Self, Option<&str>)) {
        let elements = shape.iter().product();
        match shapes::columns(shape).filter(|_| elements > 0) {
            Some(columns) => {
                self.open_rows(elements, columns);
                body(self, Some("e"));
                (0..2).for_each(|_| self.close());
            }
            None => self.each(elements, body),
        }
    }

    /// The lines that open a loop over elements, by rows and columns.
    pub(super) fn open_rows(&mut self, elements: usize, columns: usize) {
        self.open_loop_over("e_row", elements / columns);
        self.open(&format!("for (int e_col = 0; e_col < {columns}; e_col++) {{"));
        self.line(format!("const int e = e_row * {columns} + e_col;"));
    }

    /// A loop over elements of whose body there may be no text.
    pub(super) fn try_each(
        &mut self,
        elements: usize,
        body: impl FnOnce(&mut Self, Option<&str>) -> Option<()>,
    ) -> Option<()> {
        let mut done = (elements == 0).then_some(());
        self.each(elements, |w, e| done = body(w, e));
        done
    }

    /// A line that opens a loop of so many turns.
    pub(super) fn open_loop_over(&mut self, counter: &str, turns: usize) {
        let pragma = if turns <= MOST_UNROLLED { self.frame.unrolled(turns) } else { self.frame.rolled() };
        if !pragma.is_empty() {
            self.line(pragma);
        }
        self.open(&format!("for (int {counter} = 0; {counter} < {turns}; {counter}++) {{"));
    }
}
