"""`loadprint check`: finds configuration mistakes that ruin results, and prints fixes."""
