//! The variables of a scope. A run opens one for each turn of each loop, and where lanes decide about a branch, it keeps
//! the variables of all scopes twice: both must cost little.

use std::sync::Arc;

use crate::base::HashMap;
use crate::stan::value::Val;

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) value: Val,
}

/// Names of a function or of the blocks, the innermost scope last. A copy shares what is not assigned.
pub(super) type Frame = Vec<Arc<Scope>>;

/// So many variables are looked for one after the other.
const FEW: usize = 8;

/// Variables, in the order in which they were declared.
#[derive(Clone, Default, Debug)]
pub(super) struct Scope {
    variables: Vec<(Arc<str>, Variable)>,
    /// Where they are, if they are many.
    index: Option<Arc<HashMap<Arc<str>, usize>>>,
}

impl Scope {
    fn place(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.variables.iter().position(|(other, _)| **other == *name),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Variable> {
        self.place(name).map(|at| &self.variables[at].1)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Variable> {
        self.place(name).map(|at| &mut self.variables[at].1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Variable)> {
        self.variables.iter().map(|(name, variable)| (name, variable))
    }

    /// Declares a variable, or gives it another value.
    pub(super) fn insert(&mut self, name: &Arc<str>, variable: Variable) {
        if let Some(old) = self.get_mut(name) {
            *old = variable;
            return;
        }
        let at = self.variables.len();
        self.variables.push((name.clone(), variable));
        match &mut self.index {
            Some(index) => {
                Arc::make_mut(index).insert(name.clone(), at);
            }
            None if at >= FEW => {
                let names = self.variables.iter().enumerate();
                self.index = Some(Arc::new(names.map(|(at, (name, _))| (name.clone(), at)).collect()));
            }
            None => {}
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.variables.clear();
        self.index = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_variables_are_found() {
        let mut scope = Scope::default();
        for n in [1, FEW, FEW + 1, 3 * FEW] {
            scope.clear();
            for i in 0..n as i64 {
                scope.insert(&format!("x{i}").into(), Variable { value: Val::int(i) });
            }
            scope.insert(&"x0".into(), Variable { value: Val::int(-1) });
            let held = |name: &str| scope.get(name).and_then(|v| v.value.as_int());
            assert_eq!(scope.iter().count(), n);
            assert_eq!((held("x0"), held("x"), held(&format!("x{n}"))), (Some(-1), None, None));
            assert!((1..n as i64).all(|i| held(&format!("x{i}")) == Some(i)));
        }
    }
}
