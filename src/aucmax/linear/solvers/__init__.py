"""Solvers of the batch learners."""
