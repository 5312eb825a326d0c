"""Model files: interface, format, atomic writes."""
