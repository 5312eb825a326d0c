"""
How many rows does a study need?
================================

Before a study: the number of positives that a confidence interval of a given width
needs, and the power of a paired test of two models.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import metrics

print(metrics.auc_sample_size(0.8, width=0.1, share=0.1))
print(metrics.auc_sample_size(0.8, null=0.75, correlation=0.6, share=0.1))

positives = np.unique(np.geomspace(10, 2000, 40).astype(int))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained")
for auc in (0.6, 0.7, 0.8, 0.9, 0.95):
    width = [2 * 1.96 * metrics.auc_variance(auc, m, 9 * m) ** 0.5 for m in positives]
    left.loglog(positives, width, label=f"AUC {auc}")
for gain in (0.01, 0.02, 0.03, 0.05):
    power = [
        metrics.auc_power(0.8 + gain, m, 9 * m, null=0.8, correlation=0.6)
        for m in positives
    ]
    right.semilogx(positives, power, label=f"0.8 against {0.8 + gain:.2f}")
left.set(xlabel="positives (10 % of the rows)", ylabel="width of the 95 % interval")
right.set(xlabel="positives (10 % of the rows)", ylabel="power of the paired test")
right.axhline(0.8, color="0.6", linestyle=":")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
plt.show()
