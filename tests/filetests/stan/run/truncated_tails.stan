// Truncation far out, where both ends have the probability 1 below them. Stan subtracts these and gives +Inf; here the
// probabilities above them tell the mass, as tests/scripts/instead.py does by mpmath:
// instead: 0 -69.841549711260576 [0.90999464932722886, 17.501684691736814]
// instead: 1 -80.23589663619047 [0.015871966327080709, -29.993782584869041]
// instead: 2 -129.44263791044859 [6.9942583548528322, 146.46294049572065]
parameters {
  real a;
  real<lower=0> s;
}
model {
  12 ~ normal(a, s) T[11, 13];
  50 ~ gamma(2, 1 + s) T[40, 60];
  60 ~ poisson(1 + s) T[50, 70];
  3000 ~ student_t(5, a, s) T[2000, 4000];
}
