"""
Partial AUC: when only low false positive rates count
=====================================================

Two models with nearly the same AUC can differ where it matters. The partial AUC looks
at false positive rates up to a limit; standardised, it is 0.5 for chance and 1 for a
perfect ranking.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import metrics
from aucmax.report import ROCDisplay

rng = np.random.default_rng(0)
y = rng.random(4000) < 0.25
wide = np.where(y, rng.normal(1.9, 2.2, 4000), rng.normal(0.0, 1.0, 4000))
narrow = np.where(y, rng.normal(1.1, 0.65, 4000), rng.normal(0.0, 1.25, 4000))
scores = {"A": wide, "B": narrow}

for name, score in scores.items():
    whole = metrics.auc_interval(y, score)
    part = metrics.partial_auc_interval(y, score, max_fpr=0.1, standardise=True)
    print(
        f"{name}: AUC {whole.value:.3f} ({whole.low:.3f} to {whole.high:.3f}), "
        f"partial AUC {part.value:.3f} ({part.low:.3f} to {part.high:.3f})"
    )
print(
    f"p of equal partial AUC: {metrics.auc_test(y, wide, narrow, max_fpr=0.1)[-1]:.2g}"
)

# %%
# The shaded strip is what the partial AUC measures:

display = ROCDisplay.from_predictions(y, scores)
display.ax_.axvspan(0.0, 0.1, color="0.9", zorder=0)
display.figure_.set_size_inches(6, 6)
plt.show()
