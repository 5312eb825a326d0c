"""Solvers that need all of the data at once, one published algorithm a file."""
