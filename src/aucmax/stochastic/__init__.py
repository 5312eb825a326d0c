"""Samplers of many passes, one published algorithm a file."""
