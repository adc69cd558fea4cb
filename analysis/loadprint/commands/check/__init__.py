"""`loadprint check`: finds configuration mistakes that ruin results, with the evidence and a fix for each."""
