"""Rows, kernels, products, threads and validation, shared by all algorithms."""
