"""Solvers that look at all the data at once, one file each."""
