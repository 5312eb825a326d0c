"""
Fraud alerts with a review capacity
===================================

A team can check 2 % of the transactions. `goal="precision@share=0.02"` reports the
precision of these alerts with a confidence interval, and chooses a threshold: with a
confidence of 95 %, at most 2 % of new rows are above it.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from aucmax import AUCClassifier
from aucmax.report import GainsDisplay

rng = np.random.default_rng(0)
n = 8000
X = rng.normal(size=(n, 6))
risk = 1.6 * X[:, 0] + X[:, 1] * X[:, 2] - 5.2
y = rng.random(n) < 1 / (1 + np.exp(-risk))
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = AUCClassifier(goal="precision@share=0.02", random_state=0).fit(X, y)
print(f"frauds: {y.mean():.1%}")
print(f"precision of the top 2 %: {model.goal_}")
print(model.threshold_)

# %%
# On new transactions, the threshold keeps its promise:

alerts = model.predict(X_test)
print(f"alerts: {alerts.mean():.2%}, precision: {y_test[alerts].mean():.2f}")

# %%
# The gains curve: the share of all frauds that is found by checking the highest scores.

display = GainsDisplay.from_estimator(model, X_test, y_test)
found = y_test[alerts].sum() / y_test.sum()
display.ax_.plot(alerts.mean(), found, "o", color="black")
_ = display.ax_.annotate(
    f"capacity: {found:.0%} of the frauds",
    (alerts.mean(), found),
    xytext=(0.15, found),
    arrowprops={"arrowstyle": "->"},
    va="center",
)
