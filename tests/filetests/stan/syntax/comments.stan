// at the start
/* a block
 * of several lines */

data { // after a brace
  int /* inside */ N; // after a statement

  // before the next

  real x /* one */, /* two */ y;
  // at the end
}

model {
  // alone
  if (N > 0) // after a condition
    target += x; // in the arm
  /* before else */ else // after else
    target += // in a sum
        x + // of two
        y;
  target += normal_lpdf(x | // the mean
                        0, 1 /* the scale */);
  {
    // nothing
  }
}
// the end
