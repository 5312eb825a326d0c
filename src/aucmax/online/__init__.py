"""One-pass learners, one published algorithm a file."""
