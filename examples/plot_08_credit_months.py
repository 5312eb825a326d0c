"""
Credit risk over time
=====================

A model is trained on one year and used in the next. Two questions each month: does it
still rank (AUC with confidence interval), and have the applicants changed (stability
index of the scores)?
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import BAMCV, metrics
from aucmax.report import GroupsDisplay

rng = np.random.default_rng(0)
n = 24_000
month = np.repeat(np.arange(24), n // 24)
X = rng.normal(size=(n, 5))
X[:, 0] += 0.08 * np.maximum(month - 15, 0)  # applicants change …
effect = np.where(month < 18, 1.0, 0.3)  # … and later so does their behaviour
risk = effect * (X[:, 0] + 0.7 * X[:, 1]) - 3.2
y = rng.random(n) < 1 / (1 + np.exp(-risk))

train = month < 12
model = BAMCV().fit(X[train], y[train])
score = model.decision_function(X)
later = ~train
dates = np.datetime64("2023-01") + month.astype("timedelta64[M]")

figure, (above, below) = plt.subplots(
    2, 1, figsize=(8, 6.5), height_ratios=[2, 1], layout="constrained"
)
names = np.datetime_as_string(dates[later])
GroupsDisplay.from_predictions(y[later], score[later], time=names, ax=above)
above.set_title("AUC of each month after training")
index = [
    metrics.stability_index(score[train], score[month == m]).value
    for m in range(12, 24)
]
below.bar(np.arange(12), index)
below.axhline(0.1, color="0.5", linestyle=":")
below.set(ylabel="stability index", xticks=[])
plt.show()

# %%
# The index sees the change of the applicants, the AUC the change of their behaviour.
# One does not replace the other.
