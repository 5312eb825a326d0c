"""What every algorithm shares; imports none of its siblings, reads no data."""
