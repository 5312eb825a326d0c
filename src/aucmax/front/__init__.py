"""The front doors: estimators that choose among others, and leave nothing to tune."""
