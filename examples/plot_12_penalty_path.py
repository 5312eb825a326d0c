"""
Fifty penalties for the price of one
====================================

The pairwise square loss needs only class means and covariances. `LeastSquaresAUCCV`
therefore computes the exact minimum for fifty penalties, with five-fold
cross-validation, from one pass over the rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from aucmax import LeastSquaresAUCCV

X, y = load_breast_cancer(return_X_y=True)
model = LeastSquaresAUCCV().fit(X, y)
path = model.path_

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.semilogx(path["l2"], model.scores_, color="0.8", lw=0.9)
ax.semilogx(path["l2"], path["auc"], lw=2, label="mean of five folds")
ax.fill_between(
    path["l2"],
    path["auc"] - path["error"],
    path["auc"] + path["error"],
    alpha=0.2,
    label="± one standard error",
)
ax.axvline(model.l2_, color="0.4", linestyle="--", label=f"chosen: {model.l2_:.2g}")
ax.set(xlabel="l2 penalty", ylabel="AUC on held-out folds")
ax.legend(frameon=False)
plt.show()
