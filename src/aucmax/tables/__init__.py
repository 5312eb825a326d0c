"""Tables: column kinds, number formats, labels, encoding."""
