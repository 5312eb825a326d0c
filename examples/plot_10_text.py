"""
Rank texts
==========

Sparse rows go in as they are. With more features than rows, a linear ranker is hard to
beat, and its weights can be read.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB

from aucmax import BAMCV
from aucmax.report import PrecisionRecallDisplay

rng = np.random.default_rng(0)
filler = np.array([f"word{i}" for i in range(3000)])
urgent = np.array("refund broken cancel angry late lawyer damaged never".split())
calm = np.array("thanks great love perfect happy quick friendly again".split())
frequency = 1 / np.arange(1, 3001)
frequency /= frequency.sum()
y = rng.random(3000) < 0.1
texts = []
for label in y:
    words = list(rng.choice(filler, 40, p=frequency))
    words += list(rng.choice(urgent, rng.poisson(1.6 if label else 0.3)))
    words += list(rng.choice(calm, rng.poisson(0.4 if label else 1.0)))
    texts.append(" ".join(words))

train, test, y_train, y_test = train_test_split(texts, y, stratify=y, random_state=0)
vectorizer = TfidfVectorizer()
X, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)

model = BAMCV().fit(X, y_train)
scores = {
    "BAMCV": model.decision_function(X_test),
    "naive Bayes": MultinomialNB().fit(X, y_train).predict_proba(X_test)[:, 1],
}

names = vectorizer.get_feature_names_out()
order = np.argsort(model.coef_[0])
chosen = np.r_[order[:8], order[-8:]]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
PrecisionRecallDisplay.from_predictions(y_test, scores, ax=left)
right.barh(names[chosen], model.coef_[0, chosen])
right.set_xlabel("weight")
plt.show()
