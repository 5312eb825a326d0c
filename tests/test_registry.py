"""The names of the literature."""

import ast
import re
from contextlib import suppress
from csv import DictReader
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import aucmax
from aucmax.base.interfaces import GAUSSIAN
from aucmax.registry import CLASSES, SAME, SYSTEMS, configured, full_name
from helpers.data import gaussian

RESULTS = Path(__file__).parents[2] / "shared" / "papers" / "results.csv"
every = pytest.mark.parametrize("name", SYSTEMS)


def small(name, **more):
    """Return a system that fits in no time."""
    model = aucmax.named(name, **more)
    known = model.get_params()
    if "map__n_components" in known:
        model.set_params(map__n_components=8, first_rows=40)
    seeds = [key for key in known if key.endswith("random_state")]
    return model.set_params(**dict.fromkeys(seeds, 0))


def test_all_names_of_the_papers():
    assert len(SYSTEMS) == 41
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name}, the papers' tables, is not here")
    with open(RESULTS) as file:
        rows = list(DictReader(file))
    in_text = {"NSAM", "SVM-perf"}  # in a figure and in the text, but in no table
    for name, system in SYSTEMS.items():
        if name in in_text:
            continue
        papers = {row["source"] for row in rows if row["algorithm"] == name}
        assert set(system.papers) == papers, name
    assert {row["algorithm"] for row in rows} == set(SYSTEMS) - in_text


@every
def test_each_learns_saves_and_scores(name, tmp_path):
    X, y = gaussian(150, 5)
    model = small(name).fit(X, y)
    assert model.score(X, y) > 0.75
    model.save(tmp_path / "model")
    again = aucmax.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.decision_function(X), model.decision_function(X)
    )
    if hasattr(model, "partial_fit"):
        again = small(name).partial_fit(X, y)
        assert again.score(X, y) > 0.6


@every
def test_the_formula_is_the_score(name):
    X, y = gaussian(150, 5)
    model = small(name).fit(X, y)
    b, w, scaling, units = model.expression()
    z = X
    if scaling is not None:
        z = (X[:, scaling.columns] - scaling.centre) * scaling.unit
        z = np.clip(z, scaling.low, scaling.high)
    score = b + z @ w
    if units is not None:
        angles = z @ units.directions + units.phases
        if units.kind == GAUSSIAN:
            waves = np.exp(angles - 0.5 * np.square(z).sum(axis=1, keepdims=True))
        else:
            waves = np.cos(angles)
        score = score + waves @ units.amplitudes
    assert_allclose(model.decision_function(X), score, rtol=1e-8, atol=1e-8)


@every
def test_printed_settings_are_settings(name):
    model = small(name, printed=True)
    model._validate_params()
    learner = getattr(model, "learner", model)
    for key, value in SYSTEMS[name].printed.items():
        assert getattr(learner, key) == value
    X, y = gaussian(100, 5)
    getattr(model, "partial_fit" if hasattr(model, "partial_fit") else "fit")(X, y)


@pytest.mark.parametrize("name", list(dict.fromkeys([*CLASSES, *SYSTEMS])))
def test_the_published_form_differs_or_is_stated_to_be_the_same(name):
    differs = repr(aucmax.named(name, printed=True)) != repr(aucmax.named(name))
    assert differs != (name in SAME), f"add {name} to PRINTED or SAME of registry.py"


def as_published(kind):
    """Return the constants in the settings that the docstring calls "As published"."""
    text = " ".join((getattr(aucmax, kind).__doc__ or "").split())
    found = re.search(rf"As published: ``{kind}\((.*?)\)``", text)
    settings = {}
    for key, value in re.findall(r"(\w+)=([^,)]+)", found[1] if found else ""):
        with suppress(ValueError, SyntaxError):  # a letter of the paper: to be tuned
            settings[key] = ast.literal_eval(value)
    return settings


@pytest.mark.parametrize("kind", CLASSES)
def test_the_published_form_is_that_of_the_docstring(kind):
    expected = as_published(kind)
    problem = f'Notes of {kind}: "As published: …" is for what is not in SAME'
    assert bool(expected) == (kind not in SAME), problem
    names = [name for name in SYSTEMS if SYSTEMS[name].learner[0] == kind]
    for name in [kind, *(names if expected else [])]:
        model = aucmax.named(name, printed=True)
        found = getattr(model, "learner", model).get_params()
        wanted = {**expected, "step": 0.5} if name.startswith("FCBR") else expected
        assert {key: found[key] for key in wanted} == wanted  # FCBR is of chapter 5


@every
def test_what_is_written_is_what_is_built(name):
    names = {kind: getattr(aucmax, kind) for kind in (*aucmax.ESTIMATORS, *aucmax.MAPS)}
    assert repr(eval(SYSTEMS[name].settings(), names)) == repr(aucmax.named(name))


def test_settings_of_the_papers():
    assert aucmax.named("OPAUCr").rank == 50
    assert aucmax.named("cbr-diag-fifo").covariance == "diag"
    assert aucmax.named("NBAM").map.n_components == 1600
    assert aucmax.named("FCBR-RS").map.kind == "sincos"
    assert aucmax.named("RBF-RankSVM-sub").subsample == 0.2


def test_classes_have_names_too():
    for name in CLASSES:
        assert type(aucmax.named(name)).__name__ == full_name(name.upper())


@pytest.mark.parametrize(
    ("name", "near"), [("NPSAN", "NPSAM"), ("cbrfifo", "CBR-FIFO"), ("bamm", "BAM")]
)
def test_a_near_miss_lists_what_is_near(name, near):
    with pytest.raises(
        ValueError, match=f"no algorithm '{name}'.*Did you mean.*{near}"
    ):
        aucmax.named(name)


def test_no_name_at_all_lists_all():
    with pytest.raises(ValueError, match=r"Known algorithms: SPAM, .*FCBR-FIFO"):
        aucmax.named("?")


def test_parameters_find_their_part():
    model = aucmax.named("NPSAM", n_components=7, l2=0.1, random_state=3)
    assert (model.map.n_components, model.learner.l2) == (7, 0.1)
    assert (model.map.random_state, model.learner.random_state) == (3, 3)
    assert configured(model, {"map__width": 2.0}).map.width == 2.0
    with pytest.raises(ValueError, match=r"Chain has no parameter 'colour'.*map"):
        configured(model, {"colour": 1})
    with pytest.raises(ValueError, match=r"SPAM has no parameter 'rank'. It has l2, "):
        aucmax.named("SPAM", rank=3)
    with pytest.raises(ValueError, match=r"'tol' is ambiguous: .*tol or .*tol"):
        aucmax.named("NBAM", tol=1e-3)
