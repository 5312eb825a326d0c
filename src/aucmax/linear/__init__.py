"""Batch learners of linear scores."""
