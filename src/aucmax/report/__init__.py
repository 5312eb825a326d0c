"""Figures of results that are computed elsewhere."""
