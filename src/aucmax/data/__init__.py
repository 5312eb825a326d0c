"""Data as users have it: files and streams, read in chunks of bounded memory."""
