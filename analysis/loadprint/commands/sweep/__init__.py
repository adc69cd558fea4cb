"""`loadprint sweep`: executions with a matrix of sides as pivot tables."""
