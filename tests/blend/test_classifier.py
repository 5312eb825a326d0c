"""AUCClassifier: results, data frames, duplicates and model files."""

import os
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

import aucmax
from aucmax import BAM, AUCClassifier, AUCStream
from aucmax.blend.boosting import BoostedTrees
from helpers.data import gaussian, wide

LIGHT = [BAM(), BoostedTrees(10)]


def light(**parameters):
    return AUCClassifier(**{"members": LIGHT, "cv": 3, "random_state": 0, **parameters})


def crossed(n=600, seed=0):
    """Return rows whose labels depend on one feature and on a product of two."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, X[:, 0] + 2 * X[:, 1] * X[:, 2] + rng.standard_normal(n) > 1.0


def table(n=500, seed=0):
    """Return a data frame with several column kinds, and labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "job": rng.choice(["cook", "nurse", "student"], n),
            "since": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 10**6, n), "min"),
            "noise": rng.choice(["a", "b"], n),
        }
    )
    score = (frame["job"] == "student") * 2.0 + (frame["age"] - 40) / 10
    frame.loc[::7, "age"] = np.nan
    return frame, np.where(score + rng.standard_normal(n) > 1.0, "yes", "no")


def test_defaults_find_linear_and_nonlinear_effects():
    X, y = crossed()
    new, labels = crossed(2000, seed=1)
    model = AUCClassifier(random_state=0).fit(X, y)
    assert model.score(new, labels) > BAM().fit(X, y).score(new, labels) + 0.05
    assert len(model.leaderboard_) == 3
    assert sum(line.weight for line in model.leaderboard_) == pytest.approx(1.0)
    areas = [line.auc for line in model.leaderboard_]
    assert areas == sorted(areas, reverse=True)
    importance = {column.column: column for column in model.importances_}
    assert importance["1"].low > 0.0
    assert importance["2"].low > 0.0
    assert importance["4"].low < 0.0 < importance["4"].high
    assert model.feature_importances_[1] == importance["1"].drop
    assert "shuffled: 1" in model.explain() or "shuffled: 2" in model.explain()


def test_the_score_is_the_blend_of_its_members():
    X, y = crossed(300)
    model = light().fit(X, y)
    mean, scale, w = model._blend
    parts = [
        np.mean([one.decision_function(X) for one in models], axis=0)
        for models in model.members_.values()
    ]
    blend = (w / scale) @ (np.array(parts) - mean[:, None])
    slope, offset = model._odds
    assert_allclose(model.decision_function(X), slope * blend + offset)
    p = model.predict_proba(X)
    assert_allclose(np.log(p[:, 1] / p[:, 0]), model.decision_function(X))
    assert_array_equal(model.predict(X), p[:, 1] > 0.5)


def test_the_interval_covers_the_auc_of_the_fold_models_on_new_rows():
    new, labels = crossed(3000, seed=99)
    hits = 0
    for seed in range(10):
        model = light().fit(*crossed(200, seed=seed))
        areas = [roc_auc_score(labels, model._score_encoded(new, k)) for k in range(3)]
        hits += model.auc_.low < np.mean(areas) < model.auc_.high
        assert model.score(new, labels) > np.mean(areas)  # their mean is better
    assert hits >= 8  # of ten; fewer has probability 1/90 at 95 % coverage


def test_probabilities_are_calibrated():
    X, y = crossed(2000)
    new, labels = crossed(5000, seed=1)
    model = light(members=[BAM(), BoostedTrees(80)]).fit(X, y)
    p = model.predict_proba(new)[:, 1]
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0)):
        some = (p >= low) & (p < high)
        assert abs(p[some].mean() - labels[some].mean()) < 0.05


def test_any_estimators_are_blended():
    X, y = crossed(300)
    members = [
        ("forest", RandomForestClassifier(20)),
        LogisticRegression(),
        GaussianNB(),
        GaussianNB(var_smoothing=0.1),
    ]
    model = light(members=members).fit(X, y)
    names = {line.member for line in model.leaderboard_}
    assert names == {"forest", "LogisticRegression", "GaussianNB", "GaussianNB 2"}
    assert model.score(X, y) > 0.8
    again = light(members=members).fit(X, y)  # random_state seeds the members too
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_invalid_members_are_refused():
    X, y = crossed(60)
    with pytest.raises(ValueError, match="members is empty"):
        light(members=[]).fit(X, y)
    with pytest.raises(
        ValueError, match=r"members contains 'BAM'; expected an estimator"
    ):
        light(members=["BAM"]).fit(X, y)
    with pytest.raises(
        ValueError, match="KNeighborsClassifier does not support sample_wei"
    ):
        light(members=[KNeighborsClassifier()]).fit(X, y, np.arange(60) + 1.0)


def test_foreign_members_are_not_saved(tmp_path):
    X, y = crossed(100)
    model = light(members=[GaussianNB(), BAM()]).fit(X, y)
    with pytest.raises(TypeError, match=r"GaussianNB cannot be saved.*could run code"):
        model.save(tmp_path / "m.aucmax")
    assert not os.listdir(tmp_path)


def test_model_files_have_all_results(tmp_path):
    X, y = crossed(200)
    X[::9, 3] = np.nan
    model = light().fit(X, y)
    model.save(tmp_path / "m.aucmax")
    again = aucmax.load(tmp_path / "m.aucmax")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.leaderboard_ == model.leaderboard_
    assert again.importances_ == model.importances_
    assert again.auc_ == model.auc_
    assert again.explain() == model.explain()


def test_missing_values():
    X, y = crossed(600)
    missing = np.random.default_rng(1).random(600) < 0.5 * y
    X[missing, 4] = np.nan  # missing values are informative
    model = light().fit(X, y)
    assert model.n_features_in_ == 5
    with_nan, without = X[:1].copy(), X[:1].copy()
    with_nan[0, 4], without[0, 4] = np.nan, 0.0
    assert model.decision_function(with_nan) > model.decision_function(without)
    with pytest.raises(ValueError, match="infinity at row 0, column 1"):
        model.decision_function([[0.0, np.inf, 0.0, 0.0, 0.0]])
    whole = light().fit(X[:, :4], y)
    new = np.array([[0.0, np.nan, 0.0, 0.0]])  # missing in training never
    assert np.isfinite(whole.decision_function(new)).all()
    with pytest.raises(ValueError, match="NaN at row 0, column 1"):
        whole.decision_function(sparse.csr_array(new))


def test_data_frames_with_several_column_kinds(tmp_path):
    frame, y = table()
    model = light().fit(frame, y)
    new, labels = table(seed=1)
    assert model.score(new, labels) > 0.75
    columns = [column.column for column in model.importances_]
    assert set(columns) == {"age", "job", "since", "noise"}
    assert set(columns[:2]) == {"age", "job"}
    expected = model.decision_function(new)
    # Columns are matched by name; Arrow tables give the same scores.
    assert_array_equal(model.decision_function(new[new.columns[::-1]]), expected)
    assert_array_equal(model.decision_function(pa.table(new)), expected)
    model.save(tmp_path / "m.aucmax")
    again = aucmax.load(tmp_path / "m.aucmax")
    assert_array_equal(again.decision_function(new), expected)
    assert_array_equal(again.predict(new), model.predict(new))
    again.save(tmp_path / "m2.aucmax")
    assert (tmp_path / "m2.aucmax").read_bytes() == (tmp_path / "m.aucmax").read_bytes()
    X, labelled = crossed(100)
    assert again.fit(X, labelled).decision_function(X).shape == (100,)
    with pytest.raises(ValueError, match="job"):
        model.decision_function(new.drop(columns="job"))


def test_a_numeric_data_frame_is_an_array_with_names():
    X, y = crossed(200)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = light().fit(frame, y)
    assert_array_equal(model.feature_names_in_, list("abcde"))
    expected = light().fit(X, y).decision_function(X)
    assert_allclose(model.decision_function(frame), expected)
    assert {column.column for column in model.importances_} == set("abcde")


def test_wide_sparse_rows_stay_sparse():
    X, y = wide(d=3000)
    model = AUCClassifier(random_state=0).fit(X, y)
    assert all("linear" in line.member for line in model.leaderboard_)
    assert model.score(X, y) > 0.99
    assert model.importances_ == []
    with pytest.raises(AttributeError, match="permutation_importance"):
        model.feature_importances_  # noqa: B018


def test_weights_and_groups():
    X, y = crossed(300)
    weight = np.where(X[:, 3] > 0, 1.0, 0.0)
    some = weight > 0
    groups = np.arange(300) // 4
    model = light().fit(X, y, weight, groups=groups)
    alone = light().fit(X[some], y[some], np.ones(some.sum()), groups=groups[some])
    assert_allclose(model.decision_function(X), alone.decision_function(X))
    with pytest.raises(ValueError, match=r"groups.shape == \(299,\)"):
        light().fit(X, y, groups=groups[1:])


def test_time_series_splits():
    X, y = crossed(400)
    model = light(cv=TimeSeriesSplit(4)).fit(X, y)
    assert model.n_iter_ == 1
    assert model.score(X, y) > 0.7
    found = model.importances_  # by the models of the splits, on their test rows
    assert len(found) == 5
    assert found[0].column in {"0", "1", "2"}


def test_an_interrupt_restores_the_previous_model(monkeypatch):
    X, y = crossed(200)
    model = light().fit(X, y)
    expected = model.decision_function(X)

    def interrupted(self, *_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BoostedTrees, "_grow", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    assert_array_equal(model.decision_function(X), expected)
    fresh = light()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert vars(fresh) == vars(light())


def test_a_single_split():
    X, y = crossed(300)
    rows = np.arange(300)
    model = light(cv=[(rows[:200], rows[200:])]).fit(X, y)
    assert model.n_iter_ == 1
    assert 0.6 < model.auc_.low < model.auc_.high < 1.0


def test_verbose_prints_a_line_per_model(capsys):
    X, y = gaussian(90)
    light(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0] == "[AUCClassifier] 1 of 6 models: BAM"


def test_a_tiny_time_budget():
    X, y = crossed(400)
    model = light(time_budget=1e-6).fit(X, y)  # the first member only
    (line,) = model.leaderboard_
    assert line.member == "BAM"
    assert roc_auc_score(y, model.decision_function(X)) > 0.6
    assert model.auc_.value > 0.5


def test_narrow_csr_rows_give_the_scores_of_dense_rows():
    X, y = crossed(200)
    rows = sparse.csr_array(X)
    model = light().fit(rows, y)
    expected = light().fit(X, y).decision_function(X)
    assert_array_equal(model.decision_function(rows), expected)


def coded(n=1500, seed=0):
    """Return numeric codes; odd codes have more positives than even ones."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 40, n)
    y = rng.random(n) < np.where(code % 2, 0.7, 0.2)
    return code, rng.normal(size=n), y


FORMS = {
    "category of integers": lambda code: pd.Series(code).astype("category"),
    "category of digits": lambda code: pd.Series(code).astype(str).astype("category"),
    "digits": lambda code: pd.Series(code).astype(str),
    "with a letter": lambda code: "k" + pd.Series(code).astype(str),
}


@pytest.mark.parametrize("form", FORMS)
def test_categorical_types_and_strings_of_digits_are_categorical(form):
    code, noise, y = coded()
    new, other, label = coded(seed=1)
    tables = [
        pd.DataFrame({"code": FORMS[form](part), "x": rest})
        for part, rest in ((code, noise), (new, other))
    ]
    model = AUCClassifier([BAM()], cv=3, random_state=0).fit(tables[0], y)
    assert [(c.name, c.kind) for c in model.columns_] == [
        ("code", "categorical"),
        ("x", "numeric"),
    ]
    assert model.score(tables[1], label) > 0.7


def test_categories_of_polars_and_arrow():
    polars = pytest.importorskip("polars")
    code, noise, y = coded(300)
    text = pd.Series(code).astype(str).tolist()
    frame = polars.DataFrame({"code": text, "x": noise})
    frame = frame.with_columns(polars.col("code").cast(polars.Categorical))
    arrow = pa.table({"code": pa.array(text).dictionary_encode(), "x": noise})
    for table_ in (frame, arrow):
        model = AUCClassifier([BAM()], cv=3, random_state=0).fit(table_, y)
        assert model.columns_[0].kind == "categorical"


def test_column_kinds_can_be_overridden():
    code, noise, y = coded()
    frame = pd.DataFrame({"code": code, "x": noise, "leak": y.astype(float)})
    fit = AUCClassifier([BAM()], cv=3, random_state=0, categorical=["code"])
    model = fit.set_params(drop=["leak"]).fit(frame, y)
    assert [c.name for c in model.columns_] == ["code", "x"]
    assert 0.7 < model.score(frame, y) < 0.9
    with pytest.raises(ValueError, match="pandas"):
        AUCClassifier([BAM()], categorical=[0]).fit(frame.to_numpy(), y)
    with pytest.raises(ValueError, match=r"no categorical column 'cod'.*'code'"):
        AUCClassifier([BAM()], categorical=["cod"]).fit(frame, y)


def test_wide_tables_keep_trees_and_importances(tmp_path):
    X, y = crossed(700)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["tail"] = [f"N{number}" for number in rng.integers(0, 500, len(y))]
    model = AUCClassifier(cv=2, random_state=0).fit(frame, y)
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == [*"abcde", "tail"]
    assert {line.member for line in model.leaderboard_} >= {"boosted trees", "kernel"}
    assert model.auc_.value > 0.8
    assert {column.column for column in model.importances_[:3]} <= {"a", "b", "c"}
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    assert_array_equal(twin.decision_function(frame), model.decision_function(frame))
    assert twin.columns_ == model.columns_


def test_a_lazy_frame_is_refused():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.0, 2.0] * 5, "z": ["a", "b"] * 5}).lazy()
    with pytest.raises(TypeError, match="collect"):
        AUCClassifier([BAM()], cv=2).fit(frame, [0, 1] * 5)


def test_column_kinds_are_detected_from_the_whole_frame():
    n = 60_000
    rng = np.random.default_rng(0)
    late = np.where(np.arange(n) < 25_000, np.nan, rng.normal(size=n))
    frame = pd.DataFrame({"late": late, "word": rng.choice(["a", "b"], n)})
    y = np.nan_to_num(late) + rng.normal(size=n) > 1.0
    model = AUCClassifier([BAM()], cv=2, random_state=0).fit(frame, y)
    assert model.columns_[0].kind == "numeric"
    assert model.score(frame, y) > 0.7


def test_explain_names_the_positive_class_and_the_training_rows():
    X, y = crossed()
    model = light().fit(X, np.where(y, "legit", "other"))
    assert "class 'other' above rows of class 'legit'" in model.explain()
    assert "(400 rows per model)" in model.explain()


@pytest.mark.parametrize("estimator", [light(), AUCStream(random_state=0)])
@pytest.mark.parametrize(
    ("labels", "warned"),
    [(("good", "bad"), True), (("no", "yes"), False), (("fraud", "legit"), True)],
)
def test_a_warning_if_the_label_names_suggest_the_other_class(
    estimator, labels, warned
):
    X, y = gaussian(100, 3)
    y = np.where(y > 0, *labels)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        clone(estimator).fit(X, y)
    texts = [
        str(one.message) for one in found if "The positive class" in str(one.message)
    ]
    assert bool(texts) == warned
    if warned:
        assert f"If it should be {min(labels)!r}" in texts[0]


def test_a_warning_if_the_larger_label_is_the_frequent_one():
    X, _ = gaussian(200, 3)
    rare = np.arange(200) % 5 == 0
    with pytest.warns(UserWarning, match="If it should be 'left', 20.0% of the rows"):
        light().fit(X, np.where(rare, "left", "stayed"))


def copied(times, seed=0):
    """Return noise, with each positive row repeated ``times`` times."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 6)), rng.random(300) < 0.15
    order = np.append(np.arange(300), np.repeat(np.flatnonzero(y), times - 1))
    return X[order], y[order]


def test_copied_rows_do_not_raise_the_auc_of_noise(tmp_path):
    X, y = copied(10)
    with pytest.warns(UserWarning, match=r"rows equal another row and have its label"):
        model = light().fit(X, y)
    distinct = light().fit(*copied(1))
    assert model.auc_.low < 0.5 < model.auc_.high
    assert model.auc_.se > 0.7 * distinct.auc_.se  # copies carry no information
    n = np.count_nonzero(copied(1)[1])
    assert f"{9 * n} rows equal an earlier row; equal rows share a" in model.explain()
    assert "equal an earlier row" not in distinct.explain()
    model.save(tmp_path / "m.aucmax")
    assert aucmax.load(tmp_path / "m.aucmax").explain() == model.explain()
    with pytest.warns(UserWarning, match="equal another row"):
        again = light().fit(sparse.csr_array(X), y)
    assert again.auc_ == model.auc_


def test_every_row_twice():
    X, y = copied(1)
    once = light(members=[BAM()]).fit(X, y).auc_
    with pytest.warns(UserWarning, match="300 of 600 rows equal another"):
        twice = light(members=[BAM()]).fit(np.append(X, X, axis=0), np.append(y, y))
    assert twice.auc_.low < 0.5 < twice.auc_.high
    assert twice.auc_.value == pytest.approx(once.value, abs=0.01)  # the same folds
    assert twice.auc_.se == pytest.approx(once.se, rel=0.05)


def test_copies_in_different_folds_of_the_user():
    X, y = copied(10)
    model = light(members=[BAM()], cv=StratifiedKFold(3, shuffle=True, random_state=0))
    with pytest.warns(UserWarning, match=r"trained on an equal row.*auc_ is too high"):
        model.fit(X, y)
    assert "trained on an equal row" in model.explain()
    groups = np.unique(X[:, 0], return_inverse=True)[1]
    with pytest.warns(UserWarning, match="folds keep them together"):
        light(members=[BAM()]).fit(X, y, groups=groups)


def test_equal_rows_with_different_labels_are_separate_observations():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 2)).astype(float)  # nine distinct rows
    y = rng.random(300) < 0.2 + 0.2 * X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = light(members=[BAM()]).fit(X, y)
    assert "291 rows equal an earlier row; " in model.explain()
    assert "rows were scored by models trained on an equal row" in model.explain()
    # Shares of the values 0, 1, 2: 1/6, 2/6, 3/6 of positives, 4/9, 3/9, 2/9 of others.
    best = (1 * 2 + 2 * 5.5 + 3 * 8) / 54
    assert model.auc_.low < best < model.auc_.high


def test_class_weights_multiply_sample_weights():
    X, y = crossed(300)
    weight = np.where(y == 1, 3.0, 1.0)
    by_class = light(class_weight={0: 1.0, 1: 3.0}).fit(X, y)
    by_row = light().fit(X, y, sample_weight=weight)
    assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))
    balanced = light(class_weight="balanced").fit(X, y, sample_weight=weight)
    assert balanced.predict_proba(X)[:, 1].mean() > 0.5


def test_the_html_of_a_fitted_model_shows_its_results():
    X, y = crossed(300)
    model = light(members=[("<b>bold</b>", BAM()), BoostedTrees(5)])
    assert "held-out" not in model._repr_html_()
    text = model.fit(X, y)._repr_html_()
    assert "AUC on held-out rows" in text
    assert "BoostedTrees" in text
    assert "<b>bold" not in text.split("AUC on held-out rows")[1]


def test_a_table_has_the_names_and_number_of_its_columns():
    frame, y = table()
    model = light().fit(frame, y)
    assert model.n_features_in_ == frame.shape[1]
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="pass a data frame"):
        model.predict(np.zeros((3, frame.shape[1])))


def test_rows_of_weight_zero_do_not_count_in_class_weights():
    X, y = gaussian(200, 3)
    weight = np.where(np.arange(200) < 60, 0.0, 1.0)
    weight[:60][y[:60] == y[0]] = 1.0  # left out: rows of one class
    balanced = light(class_weight="balanced")
    scores = clone(balanced).fit(X, y, weight).decision_function(X)
    kept = weight > 0.0
    expected = balanced.fit(X[kept], y[kept], weight[kept]).decision_function(X)
    assert_allclose(scores, expected, rtol=1e-9)
