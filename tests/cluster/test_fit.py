"""Models trained on a cluster, compared with one machine."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import PredefinedSplit

from helpers.data import shared
from helpers.parts import apart, blocks, table

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

import dask
import dask.array as da
from dask.delayed import delayed

import aucmax
from aucmax import (
    BAM,
    BAMCV,
    SOLAM,
    LeastSquaresAUC,
    LeastSquaresAUCCV,
    cluster,
)
from aucmax.cluster import fitting
from aucmax.cluster.distributed_rows import distributed_rows, fold_of
from aucmax.cluster.fitting import DaskMatrix
from aucmax.core.products import LocalMatrix
from aucmax.core.rows import as_rows
from aucmax.linear.bam import LOSSES

CUTS = {
    "one": [],
    "even": [100, 200, 300],
    "odd": [0, 1, 7, 7, 390],  # empty ones, single rows
    "many": list(range(30, 400, 30)),
}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_least_squares(layout, how):
    X, y = table()
    X = layout(X)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    for model in (LeastSquaresAUC(), LeastSquaresAUC(0.1, l1=0.01)):
        alone = type(model)(**model.get_params()).fit(X, y, weight)
        cluster.fit(model, *blocks(X, y, CUTS[how], weight))
        assert apart(model.coef_, alone.coef_) < 1e-9
        assert apart(model.intercept_, alone.intercept_) < 1e-9
        assert model.n_iter_ == alone.n_iter_


@pytest.mark.parametrize("how", CUTS)
def test_sorted_by_class(how):
    X, y = table()
    order = np.argsort(y)
    X, y = X[order], y[order]
    for model in (LeastSquaresAUC(), BAM()):
        alone = type(model)().fit(X, y)
        cluster.fit(model, *blocks(X, y, CUTS[how]))
        assert apart(model.coef_, alone.coef_) < 1e-9


@pytest.mark.parametrize("how", ["one", "odd", "many"])
def test_conjugate_gradients(how):
    X, y = table()
    X = sparse.csr_array(X)
    alone = LeastSquaresAUC(solver="cg", tol=1e-10).fit(X, y)
    model = cluster.fit(
        LeastSquaresAUC(solver="cg", tol=1e-10), *blocks(X, y, CUTS[how])
    )
    assert apart(model.coef_, alone.coef_) < 1e-9
    assert not hasattr(model, "state_")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", ["one", "odd", "many"])
def test_least_squares_path(how, weighted):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    cv = PredefinedSplit(fold_of(np.arange(len(y)), 4))
    alone = LeastSquaresAUCCV(20, cv=cv).fit(X, y, weight)
    passes = []
    model = cluster.fit(
        LeastSquaresAUCCV(20, cv=4),
        *blocks(X, y, CUTS[how], weight),
        watch=passes.append,
    )
    np.testing.assert_allclose(model.scores_, alone.scores_, atol=1e-12)
    np.testing.assert_allclose(model.l2s_, alone.l2s_, rtol=1e-9)
    assert model.l2_ == pytest.approx(alone.l2_, rel=1e-9)
    assert apart(model.coef_, alone.coef_) < 1e-9
    assert apart(model.coef_path_, alone.coef_path_) < 1e-9
    assert passes == [1, 2]  # covariances, then AUCs


def test_aucs_of_histograms_keep_their_bound(monkeypatch):
    X, y = table(2000)
    exact = cluster.fit(LeastSquaresAUCCV(10), *blocks(X, y, [700]))
    monkeypatch.setattr(fitting, "_GATHERED", 0)
    found = cluster.fit(LeastSquaresAUCCV(10), *blocks(X, y, [700]))
    assert np.abs(found.scores_ - exact.scores_).max() < 1e-3
    weighted = blocks(X, y, [700], np.full(len(y), 2.5))  # sums in place of counts
    same = cluster.fit(LeastSquaresAUCCV(10), *weighted)
    np.testing.assert_allclose(same.scores_, found.scores_, rtol=1e-12)
    monkeypatch.setattr(fitting, "_BINS", 64)  # most are beyond, in the end bins
    with pytest.warns(UserWarning, match="can be off by"):
        cluster.fit(LeastSquaresAUCCV(10), *blocks(X, y, [700]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", ["odd", "many"])
def test_bam(loss, how):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    alone = BAM(loss=loss, tol=1e-6).fit(X, y, weight)
    model = cluster.fit(BAM(loss=loss, tol=1e-6), *blocks(X, y, CUTS[how], weight))
    assert apart(model.coef_, alone.coef_) < 1e-9
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-12)
    assert apart(model.intercept_, alone.intercept_) < 1e-9
    assert model.n_iter_ == alone.n_iter_


@pytest.mark.parametrize("weighted", [False, True])
def test_bam_cv(weighted):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    cv = PredefinedSplit(fold_of(np.arange(len(y)), 3))
    for options in ({}, {"scale": "size", "loss": ["logistic", "balanced_logistic"]}):
        alone = BAMCV(4, cv=cv, tol=1e-6, **options).fit(X, y, weight)
        parts = blocks(X, y, CUTS["odd"], weight)
        model = cluster.fit(BAMCV(4, cv=3, tol=1e-6, **options), *parts)
        np.testing.assert_allclose(model.loss_scores_, alone.loss_scores_, atol=1e-9)
        assert (model.loss_, model.n_iter_) == (alone.loss_, alone.n_iter_)
        assert apart(model.scale_, alone.scale_) < 1e-9
        assert apart(model.coef_, alone.coef_) < 1e-9
        assert apart(model.coef_path_, alone.coef_path_) < 1e-9


def test_cross_validation_needs_both_classes_in_each_fold():
    X, _ = table()
    few = blocks(X[:40], np.arange(40) < 2, [10])
    for model in (BAMCV(), LeastSquaresAUCCV()):
        with pytest.raises(ValueError, match="too few for cross-validation"):
            cluster.fit(model, *few)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_products_with_the_matrix(layout):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    parts = blocks(layout(X), y, CUTS["odd"], weight)
    matrix = DaskMatrix(distributed_rows(*parts))
    present = weight > 0
    assert np.array_equal(matrix.signed, np.where(y, weight, -weight)[present])
    rng = np.random.default_rng(1)
    v, u = rng.standard_normal(X.shape[1]), rng.standard_normal(present.sum())
    local = LocalMatrix(as_rows(layout(X)[present]), X.shape[1])
    assert np.array_equal(matrix.times(v), local.times(v))
    found, expected = matrix.transposed_times(u), local.transposed_times(u)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [LeastSquaresAUC, BAM])
def test_a_class_without_weight_is_an_error(kind):
    X, y = table()
    with pytest.raises(ValueError, match="No row of class 1 has a weight above zero"):
        cluster.fit(kind(), *blocks(X, y, [100], 1.0 - y))


def test_wide_sparse_rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 20_000), density=1e-3, format="csr", random_state=rng)
    y = (X @ rng.standard_normal(20_000) + 0.1 * rng.standard_normal(300) > 0) * 1
    for model in (BAM(), BAM(loss="logistic"), LeastSquaresAUC()):
        alone = type(model)(**model.get_params()).fit(X, y)
        cluster.fit(model, *blocks(X, y, [11, 11, 200]))
        assert apart(model.coef_, alone.coef_) < 1e-9


@pytest.mark.parametrize(
    "name", ["german", "spambase", "svmguide3.train", "phishing", "a9a.test"]
)
def test_real_sets(name):
    X, y = shared(name)
    n = X.shape[0]
    for rows in (X, X.toarray()):
        # Collinear columns (phishing, a9a) amplify the rounding of sums over blocks.
        for model, limit in ((LeastSquaresAUC(), 1e-9), (BAM(), 1e-7)):
            alone = type(model)().fit(rows, y)
            parts = blocks(rows, y, [n // 7, n // 7, n // 2])
            assert apart(cluster.fit(model, *parts).coef_, alone.coef_) < limit


def test_dask_arrays_and_frames():
    X, y = table()
    alone = LeastSquaresAUC().fit(X, y)
    some = da.from_array(X, chunks=(90, 2))
    for labels in (da.from_array(y, chunks=77), y):
        model = cluster.fit(LeastSquaresAUC(), some, labels)
        assert apart(model.coef_, alone.coef_) < 1e-9
    single = cluster.fit(LeastSquaresAUC(), some.astype(np.float32), labels)
    assert apart(single.coef_, alone.coef_) < 1e-4
    unknown = da.concatenate([block[block[:, 0] > -np.inf] for block in [some]])
    model = cluster.fit(LeastSquaresAUC(), unknown, da.from_array(y, chunks=(90,)))
    assert apart(model.coef_, alone.coef_) < 1e-9


def test_data_frames_have_names():
    dd = pytest.importorskip("dask.dataframe", reason="dask has no data frames here")
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=np.where(y, "+", "-"))
    ddf = dd.from_pandas(frame, npartitions=3)
    model = cluster.fit(BAM(), ddf[list("abcdef")], ddf["label"])
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.classes_.tolist() == ["+", "-"]
    alone = BAM().fit(frame[list("abcdef")], frame["label"])
    assert apart(model.coef_, alone.coef_) < 1e-9
    scores = cluster.decision_function(model, ddf[list("abcdef")])
    expected = alone.decision_function(frame[list("abcdef")])
    np.testing.assert_allclose(scores.compute(), expected, rtol=1e-9)
    value = cluster.auc(ddf["label"], scores)
    assert value == alone.score(frame[list("abcdef")], frame["label"])


def test_the_fitted_estimator_can_be_saved_and_refitted(tmp_path):
    X, y = table()
    model = cluster.fit(LeastSquaresAUC(), *map(_delayed, blocks(X, y, [50, 60])))
    model.save(tmp_path / "model.aucmax")
    loaded = aucmax.load(tmp_path / "model.aucmax")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    model.partial_fit(X, y)  # continues from the class moments
    again = cluster.fit(BAM(), *blocks(X, y, [50]))
    assert cluster.fit(again, *blocks(X[:, :3], y, [50])).n_features_in_ == 3


def _delayed(parts):
    return [delayed(part) for part in parts]


def test_partitions_do_not_change_folds():
    X, y = table()
    found = [
        cluster.fit(LeastSquaresAUCCV(8), *blocks(X, y, cuts)).scores_
        for cuts in CUTS.values()
    ]
    for scores in found[1:]:
        np.testing.assert_allclose(scores, found[0], atol=1e-12)
    counts = np.bincount(fold_of(np.arange(100_000), 5))
    assert np.all(np.abs(counts - 20_000) < 800)


def test_values_of_rows_of_zero_weight_do_not_matter():
    X, y = table()
    weight = np.ones(len(y))
    weight[3] = 0.0
    alone = BAM().fit(X, y, weight)
    X[3] = np.nan
    model = cluster.fit(BAM(), *blocks(X, y, [100], weight))
    assert apart(model.coef_, alone.coef_) < 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, [y[0], y[1][:-1]]), "Partition 1: X has 300 rows, but y has"),
        (lambda X, y: (X, y[:1]), "y has 1 partitions, but X has 2.*compute_chunk"),
        (lambda X, y: (X, [y[0], y[1] * np.nan]), "Partition 1: the label is missing"),
        (lambda X, y: (X, [y[0], y[1] + 1]), "3 classes"),
        (lambda X, y: (X, [y[0] * 0, y[1] * 0]), "only one class"),
        (lambda X, y: ([X[0], X[1] * np.nan], y), "Partition 1: Input X contains NaN"),
        (lambda X, y: ([X[0], X[1][:, :2]], y), "Partition 1: X has 2 columns, but 6"),
        (
            lambda X, y: (X, [y[0], y[1].astype(str)]),
            "Partition 1 has labels such as '0.*', but partition 0 such as [01]",
        ),
        (lambda X, y: ([], []), "empty list"),
        (lambda X, y: ([X[0][:0]], [y[0][:0]]), "all partitions are empty"),
    ],
)
def test_errors_name_the_partition(change, message):
    parts = blocks(*table(), [100])
    with pytest.raises(ValueError, match=message):
        cluster.fit(LeastSquaresAUC(), *change(*parts))


def frames():
    X, y = table()
    return pd.DataFrame(X, columns=list("abcdef")), y


@pytest.mark.parametrize("kind", ["list", "delayed", "dask"])
@pytest.mark.parametrize("names", [list("abcdef"), [0, 1, 2, 3, 4, 5]])
def test_columns_in_another_order(names, kind):
    frame, y = frames()
    frame.columns = names
    alone = LeastSquaresAUC().fit(frame, y)
    X = [frame[:100], frame[100:][names[::-1]]]
    Y = [y[:100], y[100:]]
    if kind == "delayed":
        X, Y = ([delayed(part) for part in parts] for parts in (X, Y))
    elif kind == "dask":
        dd = pytest.importorskip("dask.dataframe")
        parts = dict(enumerate(X))
        X = dd.from_map(parts.get, [0, 1], meta=frame[:0])
    model = cluster.fit(LeastSquaresAUC(), X, Y)
    assert apart(model.coef_, alone.coef_) < 1e-9
    assert hasattr(model, "feature_names_in_") == isinstance(names[0], str)


def test_other_columns_are_an_error():
    frame, y = frames()
    other = frame[100:].rename(columns={"a": "x"})
    text = r"Partition 1: columns \['a'\] are missing and \['x'\] are not expected"
    with pytest.raises(ValueError, match=text):
        cluster.fit(LeastSquaresAUC(), [frame[:100], other], [y[:100], y[100:]])


def test_unsupported_estimators_and_parameters():
    parts = blocks(*table(), [100])
    with pytest.raises(TypeError, match="SOLAM cannot be fitted on a cluster"):
        cluster.fit(SOLAM(), *parts)
    with pytest.raises(ValueError, match="number of folds"):
        cluster.fit(LeastSquaresAUCCV(cv=[([0], [1])]), *parts)
    with pytest.raises(ValueError, match="l2"):
        cluster.fit(BAM(l2=-1.0), *parts)
    with pytest.raises(TypeError, match="must be a Dask array"):
        cluster.fit(BAM(), *table())


def test_threads_give_the_same():
    X, y = table()
    alone = cluster.fit(BAM(), *blocks(X, y, CUTS["many"]))
    with dask.config.set(scheduler="threads", num_workers=2):
        model = cluster.fit(BAM(), *blocks(X, y, CUTS["many"]))
    assert np.array_equal(model.coef_, alone.coef_)


def examples():
    """Return the code blocks of the page about clusters."""
    page = Path(__file__).parents[2] / "docs" / "scale.md"
    return re.findall("```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    """Files of one column more than X, small enough for Dask to join them."""
    lines = [line for line in examples()[0].splitlines() if "Client" not in line]
    monkeypatch.chdir(tmp_path)
    rng, parts = np.random.default_rng(0), []
    for k in range(2):
        part = pd.DataFrame(rng.normal(size=(2000, 3)), columns=list("abc"))
        part["clicked"] = (rng.random(2000) < 1 / (1 + np.exp(2 - part.a))).astype(int)
        part.to_parquet(f"part-{k}.parquet")
        parts.append(part)
    names = {}
    with dask.config.set(scheduler="threads"):
        exec("\n".join(lines), names)
        assert cluster.auc(names["y"], names["scores"]) > 0.7
    alone = pd.concat(parts)
    model = BAM(loss="logistic").fit(alone[["a", "b", "c"]], alone["clicked"])
    assert apart(names["model"].coef_, model.coef_) < 1e-6
    assert (tmp_path / "ranker.aucmax").exists()


def test_the_recipe_for_parquet_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 2000
    amount, town = rng.normal(size=n), rng.choice(["CH", "FR", "PT"], n)
    frame = pd.DataFrame({"age": rng.normal(50, 9, n), "country": town})
    frame["amount"] = np.where(rng.random(n) < 0.1, np.nan, amount)
    clicked = amount + (town == "FR") + rng.normal(size=n) > 1.0
    frame["clicked"] = np.where(rng.random(n) < 0.1, np.nan, clicked)
    for k in range(2):
        frame[1000 * k : 1000 * (k + 1)].to_parquet(f"part-{k}.parquet")
    names = {}
    with dask.config.set(scheduler="threads"):
        exec(examples()[1], names)
        found = cluster.fit(LeastSquaresAUCCV(), names["table"], names["rows"].clicked)
    frame = frame.dropna(subset=["clicked"])
    expected = frame[["age", "amount"]].fillna(frame.amount.mean())
    expected = expected.join(pd.get_dummies(frame.country, prefix="country"))
    cv = PredefinedSplit(fold_of(np.arange(len(frame)), 5))
    alone = LeastSquaresAUCCV(cv=cv).fit(expected, frame.clicked)
    assert apart(names["model"].coef_, alone.coef_) < 1e-9
    assert np.array_equal(found.coef_, names["model"].coef_)
    assert list(found.feature_names_in_) == list(expected.columns)
