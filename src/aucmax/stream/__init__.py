"""AUCStream: a race of online learners."""
