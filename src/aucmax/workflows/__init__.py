"""Comparisons of algorithms, with the statistics that they need."""
