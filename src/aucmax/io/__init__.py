"""Readers: svmlight, CSV, Parquet and Arrow, compression, data sets."""
