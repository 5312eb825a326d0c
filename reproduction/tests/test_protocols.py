"""Protocols of the papers: complete, and every model can be built."""

import numpy as np
import pytest

from aucmax_reproduction import datasets as registry
from aucmax_reproduction import papers
from aucmax_reproduction.protocol import (
    FORMS,
    OURS,
    PAIRS,
    PRINTED,
    SHARE,
    TUNED,
    Grid,
    Recipe,
    of_words,
    powers,
    thinned,
)
from aucmax_reproduction.protocols import PROTOCOLS, protocol
from aucmax_reproduction.splits import SCALERS

every = pytest.mark.parametrize("source", papers.sources())
Y = np.arange(100) < 20


@every
def test_every_printed_cell_has_a_plan(source):
    paper = protocol(source)
    for cell in papers.cells(source):
        _, plan = paper.plan(cell.table)
        subject = plan.subjects[cell.dataset]
        assert cell.copied or cell.algorithm in plan.recipes, cell
        assert (subject.scaling or plan.scaling) in SCALERS
        assert subject.name or subject.cannot
        assert not subject.unknown or subject.cannot
        if subject.name:
            known = registry.entry(subject.name)
            assert subject.part is None or subject.part in known.parts
            labels = known.classes
            assert subject.rule is None or set(subject.rule.positive) < set(labels)
            assert subject.unknown or subject.cannot or subject.rule or len(labels) == 2


@every
def test_every_recipe_can_be_built_in_every_form(source):
    for plan in protocol(source).plans.values():
        for recipe in plan.recipes.values():
            for form in FORMS:
                choices = recipe.choices(form, Y, 3)
                assert bool(choices) == (form != "ours" and bool(recipe.grid))
                for end in (0, -1):
                    picked = {name: values[end] for name, values in choices.items()}
                    model = recipe.model(form, picked)
                    assert recipe.passes is None or hasattr(model, "partial_fit")
        for picture in protocol(source).pictures:
            for name in picture.algorithms:
                _, plan = protocol(source).plan(picture.table)
                recipe = plan.recipes.get(name, Recipe(name))
                for value in picture.values if picture.parameter else ():
                    recipe.model(picture.form, {picture.parameter: value})


def test_an_unknown_source_is_named():
    with pytest.raises(
        ValueError, match=r"Unknown source 'x'\. Use one of gao2013-opauc"
    ):
        protocol("x")
    assert set(PROTOCOLS) == set(papers.sources())


def test_grids_have_units():
    values = (0.5, 2.0)
    assert Grid(values).at(Y, None) == [0.5, 2.0]
    assert Grid(values, SHARE).at(Y, None) == pytest.approx([0.5 / 0.16, 2.0 / 0.16])
    pairs = 20 * 80
    assert Grid(values, PAIRS).at(Y, None) == pytest.approx(
        [1 / (0.5 * pairs), 1 / (2.0 * pairs)]
    )
    assert powers(2.0, -1, 2, 3.0) == (1.5, 3.0, 6.0, 12.0)


def test_thinned_grids_keep_their_ends():
    assert thinned(range(23), 5) == [0, 6, 11, 16, 22]
    assert thinned((1, 2, 3), 5) == [1, 2, 3]
    assert thinned((1, 2, 3), None) == [1, 2, 3]


def test_ours_is_tuned_around_its_defaults():
    recipe = Recipe("OPAUC", {"eta0": Grid((1.0,)), "l2": Grid((1.0,))})
    choices = recipe.choices("tuned", Y, None)
    assert choices["eta0"] == [1 / 64, 1 / 8, 1.0, 8.0, 64.0]
    assert choices["l2"][0] == "auto"
    assert Recipe("NBAM", {"sigma": Grid((1.0,))}).choices("tuned", Y, None) == {
        "sigma": ["auto"]
    }


def test_further_parameters_are_tried_in_the_tuned_form_only():
    y = np.array([True, False])
    recipe = Recipe("OAMseq", {"C": Grid((1.0, 2.0))}, tried={"precondition": (True,)})
    assert recipe.choices(OURS, y, None) == {}
    assert set(recipe.choices(PRINTED, y, None)) == {"C"}
    tuned = recipe.choices(TUNED, y, 3)
    assert (len(tuned["C"]), tuned["precondition"]) == (3, [True])


def test_scaling_of_words_is_tuned_only_if_a_model_has_it():
    grid = {"l2": Grid((1.0,))}
    recipes = of_words({name: Recipe(name, grid) for name in ("OPAUCf", "BAM")})
    tuned = {name: one.choices(TUNED, Y, 1) for name, one in recipes.items()}
    assert tuned["OPAUCf"]["precondition"] == [True, False]
    assert set(tuned["BAM"]) == {"l2"}
