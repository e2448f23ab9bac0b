// What is assigned.
functions {
  real f(real x) {
    x = 2;
    f = 3;
    return x;
  }
}
data {
  int n;
  array[n] int at;
  tuple(real, tuple(int, real)) t;
}
transformed data {
  array[n] int x;
  tuple(real, tuple(int, real)) own;
  real a;
  real b;
  (a, a) = (1, 2);
  (own, own.2.1) = (t, 1);
  (a, b) = (1, 2, 3);
  (a, b) = 1;
  x[x[1]] = 2;
  x[2 : 3][1] = 1;
  x[1][2] = 1;
  own.2.2 = own.2.2;
  a = a;
  t.1 = 2;
  real c = c + 1;
}
