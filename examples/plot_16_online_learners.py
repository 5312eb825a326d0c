"""
Online learners side by side
============================

The algorithms of the literature learn from one row at a time, here from raw features
whose units differ by a factor of a million. None is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import OAM, OPAUC, PSAM, SOLAM, SPAM
from aucmax.metrics import StreamingAUC

rng = np.random.default_rng(0)
scale = np.geomspace(1e-3, 1e3, 20)
w = rng.normal(size=20)
X = rng.normal(size=(5000, 20))
y = rng.random(5000) < 1 / (1 + np.exp(2.5 - 0.8 * X @ w))
parts = np.split(np.arange(5000), 20)

figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for learner in (SPAM(), SOLAM(), OPAUC(), OAM(), PSAM()):
    area, found = StreamingAUC(), []
    learner.partial_fit(X[parts[0]] * scale, y[parts[0]], classes=[False, True])
    for part in parts[1:]:  # each row is scored before it is learnt
        area.update(y[part], learner.decision_function(X[part] * scale))
        found.append(area.bounds().value)
        learner.partial_fit(X[part] * scale, y[part])
    ax.plot([part[-1] for part in parts[1:]], found, label=type(learner).__name__)
ax.set(ylim=(0.8, None), xlabel="Rows", ylabel="AUC of all rows so far")
ax.legend(frameon=False)
plt.show()
