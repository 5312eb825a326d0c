"""
Online learners side by side
============================

The algorithms of the literature learn from one row at a time, here from raw features
whose units differ by a factor of a million. None is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import OAM, OPAUC, PSAM, SOLAM, SPAM
from aucmax.report import LearningCurveDisplay

rng = np.random.default_rng(0)
scale = np.geomspace(1e-3, 1e3, 20)
w = rng.normal(size=20)
X = rng.normal(size=(5000, 20))
y = rng.random(5000) < 1 / (1 + np.exp(2.5 - 0.8 * X @ w))
parts = np.split(np.arange(5000), 20)

figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for learner in (SPAM(), SOLAM(), OPAUC(), OAM(), PSAM()):
    batches = [(X[part] * scale, y[part]) for part in parts]
    LearningCurveDisplay.from_batches(learner, batches, classes=[False, True], ax=ax)
ax.set_ylim(0.8, None)
plt.show()
