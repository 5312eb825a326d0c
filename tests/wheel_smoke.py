"""Try an installed wheel without the repository; run by .ci/wheel."""

import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

start = perf_counter()
import aucmax  # noqa: E402

seconds = perf_counter() - start
assert "site-packages" in aucmax.__file__, aucmax.__file__
assert not {"numba", "sklearn"} & set(sys.modules), "import aucmax must be light"
assert (files("aucmax") / "py.typed").is_file()
assert (files("aucmax.cli") / "data" / "bank-marketing.csv.gz").is_file()

import numpy as np  # noqa: E402

from aucmax import AUCClassifier, AUCStream, load, metrics, report  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
y = X[:, 0] + rng.normal(size=400) > 0.5
model = AUCClassifier(random_state=0).fit(X, y)
assert metrics.auc(y, model.decision_function(X)) > 0.7
AUCStream().partial_fit(X, y, classes=[False, True])
with TemporaryDirectory() as folder:
    path = Path(folder) / "model.aucmax"
    model.save(path)
    assert np.array_equal(load(path).decision_function(X), model.decision_function(X))
    report.html(y, model.decision_function(X), Path(folder) / "report.html")
print(
    f"aucmax {aucmax.__version__}: import {seconds:.2f} s; fit, save, load, report ok"
)
