"""
Confidence interval of a ROC curve
==================================

With few positives, a ROC curve is uncertain. A *pointwise* band covers the true curve
at each false positive rate with a probability of 95 %. A *simultaneous* band covers the
whole curve, and is wider.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import metrics
from aucmax.report import ROCDisplay

rng = np.random.default_rng(1)
y = np.arange(640) < 40
score = rng.normal(size=640) + 1.3 * y

figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, band in zip(axes, ("pointwise", "simultaneous"), strict=True):
    ROCDisplay.from_predictions(y, score, band=band, fpr=[0.1], ax=ax)
    ax.set_title(f"{band} band, 40 positives")
plt.show()

# %%
# Numbers for a paper: the recall at a false positive rate of 10 %, and the threshold
# that it needs, both with intervals.

print(metrics.tpr_at(y, score, 0.1))
print(metrics.auc_interval(y, score))
