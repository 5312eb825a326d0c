"""What all estimators share: base classes, interfaces, class moments, folds."""
