//! Products of matrices, factors and solves in a machine, by the functions of `matrices.cuh`.

use super::text::Writer;
use super::{KernelOperand, KernelSource};
use crate::backend::generator::ending::Ending;
use crate::prim::{Class, Prim, Triangular};
use crate::types::Type;

/// A call for matrices that stand one behind the other.
struct Call {
    function: &'static str,
    /// What stands behind the address of the first operand, of the second, and of the result.
    behind: [String; 3],
    /// Elements of one matrix of each.
    elements: [usize; 3],
    /// How many there are.
    count: usize,
}

impl Call {
    fn product(prim: Prim, kinds: &[KernelOperand], ty: &Type) -> Option<Self> {
        let function = match prim {
            Prim::MatMul | Prim::BatchMatMul => "ab_product",
            Prim::ChainMatMul | Prim::ChainBatchMatMul => "ab_chain_product",
            _ => return None,
        };
        let outer = usize::from(matches!(prim, Prim::BatchMatMul | Prim::ChainBatchMatMul));
        let [a, b] = [0, 1].map(|at| &kinds[at].ty.shape[outer..]);
        let (rows, inner) = if let [rows, inner] = a { (*rows, *inner) } else { (1, a[0]) };
        let columns = if let [_, columns] = b { *columns } else { 1 };
        let strides = match kinds[0].is {
            KernelSource::TransposeOf(_) => [1, rows],
            KernelSource::Own | KernelSource::Shared(_) => [inner, 1],
        };
        let sizes = format!(", {rows}, {columns}, {inner}");
        Some(Self {
            function,
            behind: [format!(", {}, {}", strides[0], strides[1]), format!(", {columns}, 1"), sizes],
            elements: [rows * inner, inner * columns, rows * columns],
            count: ty.elements() / (rows * columns),
        })
    }

    fn triangular(triangular: Triangular, kinds: &[KernelOperand]) -> Option<Self> {
        let of = &kinds[0].ty;
        let n = *of.shape.last()?;
        let count = of.elements() / (n * n);
        let other = kinds.get(1).map_or(n * n, |other| other.ty.elements() / count);
        let solve = |transposed: u8, chain: u8| ("ab_solve", format!(", {n}, {}, {transposed}, {chain}", other / n));
        let (function, sizes) = match triangular {
            Triangular::Cholesky => ("ab_cholesky", format!(", {n}")),
            Triangular::ChainCholeskyTangent => ("ab_cholesky_tangent", format!(", {n}")),
            Triangular::ChainCholeskyCotangent => ("ab_cholesky_cotangent", format!(", {n}")),
            Triangular::SolveLower => solve(0, 0),
            Triangular::SolveLowerTransposed => solve(1, 0),
            Triangular::ChainSolveLower => solve(0, 1),
            Triangular::ChainSolveLowerTransposed => solve(1, 1),
        };
        let behind = [String::new(), String::new(), sizes];
        Some(Self { function, behind, elements: [n * n, other, other], count })
    }
}

impl<T: Ending> Writer<'_, T> {
    /// What is computed of matrices by a function; none for what has none.
    pub(super) fn of_matrices(
        &mut self,
        prim: Prim,
        kinds: &[KernelOperand],
        operands: &[String],
        to: &str,
        ty: &Type,
    ) -> Option<()> {
        let call = match prim.class() {
            Class::Contraction(_) => Call::product(prim, kinds, ty)?,
            Class::Triangular(triangular) => Call::triangular(triangular, kinds)?,
            _ => return None,
        };
        let Call { function, behind, elements, count } = call;
        let places = operands.iter().map(String::as_str).zip([0, 1]).chain([(to, 2)]);
        let arguments = places.map(|(address, which)| {
            let part = if count == 1 { String::new() } else { format!(" + n * {}", elements[which]) };
            format!("{address}{part}{}", behind[which])
        });
        let line = format!("{function}({});", arguments.collect::<Vec<_>>().join(", "));
        if count == 1 {
            self.line(line);
        } else {
            self.open(&format!("for (int n = 0; n < {count}; n++) {{"));
            self.line(line);
            self.close();
        }
        Some(())
    }
}
