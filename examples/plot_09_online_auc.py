"""
Online AUC: learn a stream, and notice when it changes
======================================================

`AUCStream` learns from each row once. Here the meaning of the features changes after
10,000 rows. With a half-life, old rows lose their weight and the model recovers.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import AUCStream
from aucmax.metrics import StreamingAUC, auc


def batches():
    """Generate the stream: 40 batches of 500 rows."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=10)
    for k in range(40):
        if k == 20:
            w = rng.normal(size=10)
        X = rng.normal(size=(500, 10))
        yield X, rng.random(500) < 1 / (1 + np.exp(2.5 - X @ w))


figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for half_life, colour in ((None, "C0"), (2000, "C1")):
    model, area, each, pooled = AUCStream(half_life=half_life), StreamingAUC(), [], []
    for X, y in batches():  # each row is scored before it is learnt
        if each or hasattr(model, "classes_"):
            score = model.decision_function(X)
            each.append(auc(y, score))
            pooled.append(area.update(y, score).bounds().value)
        model.partial_fit(X, y, classes=[False, True])
    rows = 500 * np.arange(2, 41)
    ax.plot(rows, each, color=colour, alpha=0.3)
    ax.plot(rows, pooled, color=colour, label=f"half_life={half_life}")
ax.set(xlabel="Rows", ylabel="AUC on rows before they are learnt")
ax.legend(frameon=False)
plt.show()

# %%
# Faint lines are the AUC of each batch, before it was learnt; strong lines are the AUC
# of all scores so far. Without a half-life, ``drift_`` and a warning report the change.
