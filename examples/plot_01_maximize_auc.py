"""
Maximize AUC in Python
======================

A table as it is: categories, missing values, numbers in any units. `AUCClassifier`
needs no preparation and no tuning. The data are calls of a bank (shipped with aucmax);
the question is which customers to call first.
"""

from importlib.resources import files

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from aucmax import AUCClassifier
from aucmax.report import ROCDisplay

bank = pd.read_csv(files("aucmax.cli") / "data" / "bank-marketing.csv.gz")
X, y = bank.drop(columns="y"), bank["y"] == "yes"
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)

model = AUCClassifier(random_state=0).fit(X, y)
print(model.explain())

# %%
# The usual baseline, with the preparation that it needs:

baseline = make_pipeline(
    make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
    ),
    LogisticRegression(class_weight="balanced", max_iter=1000),
).fit(X, y)

# %%
# ROC curves on rows that neither model has seen, with pointwise 95 % confidence bands:

scores = {
    "AUCClassifier": model.decision_function(X_test),
    "balanced logistic regression": baseline.decision_function(X_test),
}
ROCDisplay.from_predictions(y_test, scores).figure_.set_size_inches(6, 6)
