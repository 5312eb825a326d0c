"""
Imbalanced classification as ranking
====================================

With one positive in a hundred rows, accuracy and a threshold of 0.5 say nothing.
Resampling changes the scale of the scores and hardly their order. Rank the rows first,
then choose a threshold with a promise.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import BAMCV, thresholds
from aucmax.report import ScoresDisplay

rng = np.random.default_rng(0)
n = 40_000
y = rng.random(n) < 0.01
X = rng.normal(size=(n, 8)) + 0.75 * y[:, None]
train, tune, test = np.split(rng.permutation(n), [20_000, 30_000])

model = BAMCV().fit(X[train], y[train])
score = model.decision_function(X)
print(f"accuracy of calling nothing positive: {1 - y[test].mean():.3f}")
print(f"AUC: {model.score(X[test], y[test]):.3f}")

# %%
# A threshold that finds at least 80 % of the positives among new rows, with a
# confidence of 95 %, chosen on rows that the model was not trained on:

found = thresholds.choose(y[tune], score[tune], "recall>=0.8")
print(found)
called = score[test] >= found.value
print(f"on test rows: recall {called[y[test]].mean():.2f}, alerts {called.mean():.1%}")

display = ScoresDisplay.from_predictions(y[test], score[test])
display.ax_.axvline(found.value, color="black", linestyle="--")
display.ax_.annotate(" recall ≥ 80 %", (found.value, display.ax_.get_ylim()[1] * 0.9))
plt.show()
