"""
Feature interactions: a kernel model
====================================

Positives are inside a ring. No linear score can rank them; `KernelAUCCV` finds the
width of a Gaussian kernel by cross-validation, and falls back to a linear model where a
kernel gains nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from aucmax import BAMCV, KernelAUCCV

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(1500, 2))
radius = np.hypot(*X.T)
y = rng.random(1500) < 0.75 * np.exp(-(((radius - 1.2) / 0.3) ** 2)) + 0.02

grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 120)] * 2), axis=-1)
figure, axes = plt.subplots(
    1, 2, figsize=(10, 4.8), sharex=True, sharey=True, layout="constrained"
)
for ax, model in zip(axes, (BAMCV(), KernelAUCCV(random_state=0)), strict=True):
    model.fit(X[:1000], y[:1000])
    surface = model.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
    ax.contourf(*np.moveaxis(grid, -1, 0), surface, levels=20, cmap="RdBu_r")
    ax.scatter(*X[1000:].T, c=np.where(y[1000:], "black", "white"), s=9, lw=0.3, ec="k")
    auc = model.score(X[1000:], y[1000:])
    ax.set(title=f"{type(model).__name__}: AUC {auc:.3f}", aspect="equal")
plt.show()
