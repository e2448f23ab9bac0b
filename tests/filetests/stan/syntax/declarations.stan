/* Every type and every constraint, in the blocks
   that may have them. */
data {
  int N;
  int<lower=0> K;
  int<lower=1, upper=10> m; // bounds in either order
  int<upper=10, lower=1> n;
  real x;
  real<upper=2.5e3> y, z;
  complex w;
  vector[N] v;
  row_vector<lower=-1>[K] r;
  matrix<lower=0, upper=1>[N, K] A;
  complex_vector[N] cv;
  complex_row_vector[N] cr;
  complex_matrix[N, K] cm;
  array[N] int is;
  array[N, K, 2] real<lower=x> rs;
  array[N] matrix[K, K] ms;
  tuple(int, real) t;
  tuple(array[N] int<lower=0>, tuple(vector[K], real<lower=0>)) nested;
  array[2] tuple(int, vector[2]) many;
  ;
}
transformed data {
  real a = 1, b, c = a + 1;
  array[2] int d = {1, 2};
  vector[3] ones = [1, 1, 1]';
  real<lower=(a < 2 ? a : b)> bounded = 3;
}
parameters {
  real<offset=a, multiplier=2> shifted;
  vector<multiplier=3>[2] scaled;
  vector<offset=b>[2] moved;
  ordered[3] o;
  positive_ordered[3] po;
  simplex[3] s;
  unit_vector[3] u;
  sum_to_zero_vector[3] sz;
  sum_to_zero_matrix[3, 4] szm;
  cholesky_factor_corr[3] Lc;
  cholesky_factor_cov[3] L;
  cholesky_factor_cov[4, 3] L2;
  corr_matrix[3] R;
  cov_matrix[3] S;
  row_stochastic_matrix[3, 4] rsm;
  column_stochastic_matrix[3, 4] csm;
  array[4] simplex[2] ss;
}
model {
  real local;
  array[N] vector[K] inside;
  tuple(real, real) pair = (1, 2);
}
