functions {
  // ahead of its definition
  real twice(real x);
  real twice(real x) {
    return 2 * x;
  }
  void say(data int n, array[] real xs, array[,] int table) {
    print("n = ", n, " and ", xs, table);
    if (n < 0)
      return;
    reject("too many");
  }
  tuple(real, vector) both(tuple(real, vector) t, data array[] tuple(int, int) pairs) {
    return (t.1, t.2);
  }
  real foo_lpdf(real y, real mu) {
    return normal_lpdf(y | mu, 1);
  }
  real shout_lp(real x) {
    target += -x;
    return target();
  }
  complex_vector rotate(complex_vector z, matrix A, row_vector r, complex_matrix B, complex_row_vector c) {
    return A * z;
  }
  vector change_jacobian(vector x) {
    jacobian += sum(x);
    return exp(x);
  }
}
model { }
