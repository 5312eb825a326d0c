"""
A medical score: calibration and net benefit
============================================

A score for decisions about patients needs more than a good ranking: probabilities that
are right (calibration), and a net benefit above that of treating all patients or none
(decision curve analysis).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from aucmax import AUCClassifier, metrics
from aucmax.report import CalibrationDisplay, DecisionCurveDisplay

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :4] + np.random.default_rng(0).normal(size=(569, 4)) * X[:, :4].std(axis=0)
X, X_test, y, y_test = train_test_split(
    X, y == 0, test_size=0.5, stratify=y, random_state=0
)

model = AUCClassifier(random_state=0).fit(X, y)
p = model.predict_proba(X_test)[:, 1]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
CalibrationDisplay.from_predictions(y_test, p, bins=8, ax=left)
DecisionCurveDisplay.from_predictions(y_test, p, ax=right)
plt.show()

# %%
# The numbers that guidelines for prediction models ask for:

print(metrics.auc_interval(y_test, p))
print(metrics.calibration_line(y_test, p))
print(metrics.brier_score(y_test, p))
