"""
An HTML report for colleagues
=============================

`report.html` writes one self-contained file: AUC and other measures with confidence
intervals, curves, groups, a model card, and a slider over all thresholds. `aucmax
evaluate MODEL DATA --report FILE` writes the same from the command line.
"""

from tempfile import TemporaryDirectory
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from aucmax import report
from aucmax.report import GroupsDisplay

rng = np.random.default_rng(0)
region = rng.choice(["north", "south", "east", "west"], 3000)
y = rng.random(3000) < 0.15
score = rng.normal(size=3000) + np.where(region == "west", 0.5, 1.4) * y

with TemporaryDirectory() as folder:
    path = Path(folder) / "report.html"
    report.html(y, {"today's model": score}, path, group=region, title="Churn, March")
    print(f"{path.name}: {path.stat().st_size // 1024} KB")

# %%
# One of its pictures, as a display for notebooks. The test of equal AUCs in the report
# finds that the model is weak in the west:

GroupsDisplay.from_predictions(y, score, group=region)
plt.show()
