"""
Which columns matter?
=====================

The importance of a column is the loss of AUC on held-out rows when its values are
shuffled. Each has a confidence interval: a column whose interval includes zero may be
noise.
"""

import numpy as np
import pandas as pd

from aucmax import AUCClassifier
from aucmax.report import ImportanceDisplay

rng = np.random.default_rng(0)
n = 2000
city = rng.choice(["Bern", "Lyon", "Porto", "Turku"], n)
frame = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n),
        "income": rng.lognormal(10, 0.6, n),
        "city": city,
        "visits": rng.poisson(3, n),
        "noise": rng.normal(size=n),
        "customer": [f"C{i:05d}" for i in range(n)],
    }
)
log_odds = (
    1.2 * np.log(frame["income"] / 2e4)
    + 0.04 * (frame["age"] - 50)
    + 0.8 * (city == "Lyon")
    - 2.0
)
y = rng.random(n) < 1 / (1 + np.exp(-log_odds))

model = AUCClassifier(random_state=0).fit(frame, y)
ImportanceDisplay.from_estimator(model).figure_.set_size_inches(7, 3.5)

# %%
# ``customer`` has another value in each row. It was recognised as an identifier and
# left out:

for column in model.columns_:
    print(column)
