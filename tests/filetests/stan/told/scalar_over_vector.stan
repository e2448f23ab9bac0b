// A number divided by a vector or a matrix goes element by element; vectors have two dimensions.
// run: log-prob $MODEL --points '[[2, 4]]'
// says: lp = 2.25, gradient = [0, -0.1875]
// says: [1, 0.5] [[0.5, 0.25]] [0.25, 0.5]
// says: [3, 1] [1, 3] [2, 1, 3] [1, 2]
transformed data {
  vector[2] v = [1, 2]';
  vector[3] w = [1, 2, 3]';
  print(1 / v, " ", 1 / [[2, 4]], " ", divide(1, [4, 2]));
  print(dims(w), " ", dims(w'), " ", dims({w', w'}), " ", dims([[1, 2]]));
}
parameters {
  vector[2] s;
}
model {
  target += sum(1 / s);
  target += sum(s[1] / [[s[1], s[2]]]);
}
