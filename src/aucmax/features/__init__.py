"""Maps to features in which a linear ranker is not linear any more."""
