// What happens inside of the library is told where the program calls it: in its functions, in those that a solver takes, in
// the middle of a line, on all engines and in chains.
// run: log-prob $MODEL --points '[[-2, 1], [0.5, -1], [1, 1]]'
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 17, column 11 to column 32)
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 20, column 19 to column 58)
// says: lp = 3.6739
// run: log-prob $MODEL --points '[[-2, 1], [0.5, -1], [1, 1]]' --engine scalar
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 17, column 11 to column 32)
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 20, column 19 to column 58)
// run: log-prob $MODEL --points '[[-2, 1], [0.5, -1], [1, 1]]' --engine local
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 17, column 11 to column 32)
// says: cholesky_decompose: the matrix is not positive definite (pivot 0 is -1) (in 'library.stan', line 20, column 19 to column 58)
// run: sample $MODEL --chains 2 --warmup 20 --draws 2 --seed 1
// says: first after warmup: assert failed: cholesky_decompose: the matrix is not positive definite (pivot 
functions {
  matrix factor(matrix S) {
    return cholesky_decompose(S);
  }
  vector rhs(real t, vector y, real b) {
    return [0.01 * cholesky_decompose([[b, 0], [0, y[1]]])[2, 2]]';
  }
}
parameters {
  real a;
  real b;
}
model {
  matrix[3, 3] S = add_diag(rep_matrix(a, 3, 3), 1);
  target += sum(mdivide_left_tri_low(factor(S), [1, 2, 3]'));
  target += sum(ode_rk45(rhs, [1.0]', 0, {1.0}, b)[1]);
  [a, b] ~ normal(0, 1);
}
