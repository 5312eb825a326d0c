"""
DeLong test in Python: is one model better?
===========================================

Two models were scored on the same rows. `metrics.auc_test` tests whether their AUCs
differ. Because the rows are the same, the test is much sharper than a look at two
overlapping confidence intervals. The scores are generated: both models see the same
signal, and the old one adds more noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import metrics
from aucmax.report import ROCDisplay

rng = np.random.default_rng(0)
y = rng.random(2000) < 0.2
shared = rng.normal(size=2000) + 1.1 * y
old = shared + 0.8 * rng.normal(size=2000)
new = shared + 0.25 * rng.normal(size=2000)

test = metrics.auc_test(y, new, old)
print(f"difference {test.difference:.4f} ({test.low:.4f} to {test.high:.4f})")
print(f"p = {test.pvalue:.2g}")

# %%
# The two intervals overlap; the paired test is clear:

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4.8), width_ratios=[1.2, 1], layout="constrained"
)
ROCDisplay.from_predictions(y, {"new": new, "old": old}, ax=left)
for place, (name, score) in enumerate({"new": new, "old": old}.items()):
    found = metrics.auc_interval(y, score)
    bars = [[found.value - found.low], [found.high - found.value]]
    right.errorbar(place, found.value, yerr=bars, fmt="o", capsize=4)
    right.annotate(name, (place + 0.06, found.value))
right.set(xticks=[], xlim=(-0.5, 1.6), ylabel="AUC, 95 % confidence interval")
right.set_title(f"paired difference: p = {test.pvalue:.1g}")
plt.show()
