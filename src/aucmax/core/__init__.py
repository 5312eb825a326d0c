"""What every algorithm shares; imports nothing from its siblings, does no I/O."""
