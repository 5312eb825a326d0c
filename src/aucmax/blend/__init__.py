"""AUCClassifier: cross-fitting, members, blending, importance."""
