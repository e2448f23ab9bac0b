transformed data {
  int n = 1_000;
  real x = 1. + .5 + 1.5e-3 + 1E5 + .5e2;
  complex z = 2i * 1.5i + 1e2i;
  matrix[2, 2] m = [[1, 2], [3, 4]];
  tuple(int, tuple(real, real)) t = (1, (2, 3));
  array[3] int e = {1, 2, 3};
  print(-x ^ 2 ^ n, -m' * m, !n == n, +x, m \ m, n %/% 2 % 3);
  print(m .* m ./ m .^ 2, 1 .* m, m .^ m', x == x && n != n || n);
  print(t.1, t.2.1, (1, 2).2, e[{1, 2}], m[ : , 1], m[1 : , ], m[ : 2]);
  print(n ? x : n ? 1 : 2, e[n ? 1 : 2], e[n ? 1 : 2 : 3], e[]);
  print(x < 1 <= 2 > 3 >= 4, (x), ((x + 1)) * 2);
  print(normal_lpdf(x | 0, 1), normal_lcdf(x | 0, 1), target());
  print([], [1, 2]', {{1}, {2}}, "a \ text", "");
}
