// What a loop hands on to the next turn of the loop around it, in rolled-up loops of every shape.
data {
  int N;
  vector[N] w;
  array[N] int k;
}
parameters {
  vector[N] a;
  real c;
}
transformed parameters {
  vector[N] v;
  vector[N] l;
  for (i in 1 : N) {
    v[i] = 0.1 * a[i];
    if (k[i] == 1) {
      v[i] = negative_infinity();
    }
  }
  // Later elements are infinite: they must not meet a zero.
  for (i in 1 : N) {
    l[i] = exp(dot_product(v[1 : i], w[1 : i]));
  }
}
model {
  real s = c;
  real z = 1;
  matrix[N, N] B = rep_matrix(0.5, N, N);
  for (i in 1 : N) {
    for (j in 1 : 3) {
      s = 0.9 * s + a[i];
    }
  }
  target += 0.1 * s;
  for (i in 1 : N) {
    for (j in 1 : 4) {
      s = sin(s) + a[i] * a[j];
    }
    target += 0.1 * a[i] * s;
  }
  for (i in 1 : N) {
    for (j in 1 : 4) {
      real t = s;
      s = s + 0.1 * z;
      z = z - 0.1 * t;
    }
  }
  target += s + z;
  for (i in 1 : N) {
    for (j in 1 : 3) {
      z += 0.1 * a[i] + 0.3 * z;
    }
    target += square(a[i]) * -0.5;
  }
  target += sin(z);
  // Dot products that grow, as often as another loop says.
  for (i in 3 : N) {
    for (j in 4 : i) {
      B[i, j] = dot_product(a[1 : (i - 1)], w[1 : (i - 1)]) * a[i];
    }
  }
  for (i in 3 : N) {
    s += dot_product(a[1 : (i - 1)], w[1 : (i - 1)]);
  }
  target += 0.01 * (sum(B) + s);
  // Sums of long products.
  for (i in 1 : N) {
    real p = 1;
    for (j in 1 : 30) {
      p *= 1 + 0.01 * a[i] * j;
    }
    z += p;
  }
  target += log1p(square(z)) + sum(l);
}
