"""Feature maps, pipelines of a map and a learner, kernel machines."""
