"""Online learners: one published algorithm a file, on a shared engine."""
