"""Export models as ONNX graphs or as JSON.

The ONNX graph takes rows X, double (n, features), and returns a score for each of them,
double (n,). Trees use ONNX's own operator, which sums in float32.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.base.expression import GAUSSIAN, ScoreExpression
from aucmax.blend.boosting import BoostedTrees
from aucmax.blend.classifier import AUCClassifier
from aucmax.blend.forest import LEAF, Forest
from aucmax.blend.frequent import Frequent
from aucmax.blend.trees import NEAR, RandomizedTrees
from aucmax.workflows.score import Model

_MAX_NAMES = 10_000  # features; wider models have mostly hashed ones, without names
_DOUBLE = 11  # ONNX's number of this type


def to_json(model: Model) -> dict[str, Any]:
    """Return the score expression of a model, for JSON.

    Weights of zero are omitted. Models with a feature map have "scaling" and "units",
    see ``aucmax.base.expression``.
    """
    estimator = model.estimator
    formula = estimator.expression()
    if formula is None:
        raise _not_one_expression(estimator, "JSON")
    used = np.flatnonzero(formula.weights)
    indices, weights = formula.indices()[used].tolist(), formula.weights[used].tolist()
    found = {
        "format": "aucmax weights",
        "version": 1,
        "class": type(estimator).__name__,
        "classes": estimator.classes_.tolist(),
        "positive": str(model.task()),
        "features": model.width,
        "intercept": formula.intercept,
        "weights": [
            {"feature": name, "index": index, "weight": weight}
            for name, index, weight in zip(
                model.names(indices), indices, weights, strict=True
            )
        ],
    }
    if formula.units is not None:
        scaling, units = formula.scaling._asdict(), formula.units._asdict()
        found["scaling"] = {name: array.tolist() for name, array in scaling.items()}
        found["units"] = {"kind": units.pop("kind")}
        found["units"] |= {name: array.tolist() for name, array in units.items()}
    return {**found, "recipe": model.recipe}


def to_onnx(model: Model) -> bytes:
    """Return the content of an ONNX file."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError("onnx is missing: pip install 'aucmax[onnx]'") from None
    graph = _Graph()
    try:
        score = _score(graph, "X", model.estimator)
    except TypeError as error:
        raise ValueError(f"Cannot export to ONNX: {error}") from None
    graph.add("Identity", score, output="score")
    proto_graph = helper.make_graph(
        [helper.make_node(op, *ends, **options) for op, ends, options in graph.nodes],
        "aucmax",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", model.width])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["n"])],
        [_tensor(name, values) for name, values in graph.constants.items()],
    )
    # Old versions, which all runtimes support.
    versions = [helper.make_opsetid("", 13)]
    if graph.has_trees:
        versions.append(helper.make_opsetid("ai.onnx.ml", 3))
    proto = helper.make_model(
        proto_graph, producer_name="aucmax", ir_version=8, opset_imports=versions
    )
    about = {
        "class": type(model.estimator).__name__,
        "positive": str(model.task()),
        "recipe": json.dumps(model.recipe),
    }
    if model.width <= _MAX_NAMES:
        about["features"] = json.dumps(model.names())
    helper.set_model_props(proto, about)
    checker.check_model(proto)
    return bytes(proto.SerializeToString())


class _Graph:
    """Nodes and constants of a graph, with generated names."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, tuple[list[str], list[str]], dict[str, Any]]] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.has_trees = False

    def add(self, op: str, *inputs: Any, output: str = "", **options: Any) -> str:
        """Add a node and return the name of its output; arrays become constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append((op, (names, [output]), options))
        return output

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(values)
        return name


def _score(graph: _Graph, X: str, estimator: Any) -> str:
    """Add the score of an estimator; return the name of the output."""
    if isinstance(estimator, AUCClassifier):
        return _blend(graph, X, estimator)
    if isinstance(estimator, Frequent):
        chosen = graph.add("Gather", X, estimator.chosen_.astype(np.int64), axis=1)
        return _score(graph, chosen, estimator.estimator_)
    if isinstance(estimator, BoostedTrees):
        total = _forest(graph, X, estimator.forest_)
        return graph.add("Add", total, [estimator.offset_])
    if isinstance(estimator, RandomizedTrees):
        total = _forest(graph, X, estimator.forest_)
        mean = graph.add("Div", total, [float(len(estimator.forest_.roots))])
        p = graph.add("Min", graph.add("Max", mean, [NEAR]), [1.0 - NEAR])
        return graph.add("Log", graph.add("Div", p, graph.add("Sub", [1.0], p)))
    expression = estimator.expression()
    if expression is None:
        raise _not_one_expression(estimator, "ONNX")
    return _expression(graph, X, expression)


def _not_one_expression(estimator: Any, form: str) -> ValueError:
    remedy = "Train it with nonlinear=False, or use a Chain."
    if isinstance(estimator, AUCClassifier):
        remedy = "Export it to ONNX, or train a single model with --fast."
    return ValueError(
        f"Cannot export to {form}: the score of {type(estimator).__name__} is not one "
        f"linear or kernel expression. {remedy}"
    )


def _blend(graph: _Graph, X: str, estimator: AUCClassifier) -> str:
    X = _impute(graph, X, estimator._fill)
    slope, total = estimator._odds[0], graph.constant([estimator._odds[1]])
    for models, (mean, deviation, weight) in zip(
        estimator.members_.values(), estimator._blend.T, strict=True
    ):
        scores = [_score(graph, X, model) for model in models]
        centred = graph.add("Sub", graph.add("Sum", *scores), [mean * len(models)])
        part = graph.add("Mul", centred, [slope * weight / deviation / len(models)])
        total = graph.add("Add", total, part)
    return total


def _impute(graph: _Graph, X: str, fill: Any) -> str:
    """Add medians for missing values, and flags for the columns that have some."""
    if not len(fill.median):
        return X
    missing = graph.add("IsNaN", X)
    filled = graph.add("Where", missing, fill.median, X)
    if not len(fill.flagged):
        return filled
    flags = graph.add("Gather", missing, fill.flagged, axis=1)
    return graph.add("Concat", filled, graph.add("Cast", flags, to=_DOUBLE), axis=1)


def _forest(graph: _Graph, X: str, forest: Forest) -> str:
    """Add the sum of trees; the "true" branch is the left one, the next node."""
    graph.has_trees = True
    leaf = forest.feature == LEAF
    node = np.arange(len(leaf))
    tree = np.searchsorted(forest.roots, node, side="right") - 1
    node -= forest.roots[tree]  # number within its tree
    values = graph.add(
        "TreeEnsembleRegressor",
        X,
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=tree,
        nodes_nodeids=node,
        nodes_featureids=np.where(leaf, 0, forest.feature),
        nodes_modes=["LEAF" if one else "BRANCH_LEQ" for one in leaf],
        nodes_values_as_tensor=_tensor("", np.where(leaf, 0.0, forest.number)),
        nodes_truenodeids=np.where(leaf, 0, node + 1),
        nodes_falsenodeids=np.where(leaf, 0, forest.right - forest.roots[tree]),
        target_treeids=tree[leaf],
        target_nodeids=node[leaf],
        target_ids=np.zeros(np.count_nonzero(leaf), int),
        target_weights_as_tensor=_tensor("", forest.number[leaf]),
    )
    single = graph.add("Reshape", values, np.array([-1]))
    return graph.add("Cast", single, to=_DOUBLE)


def _expression(graph: _Graph, X: str, formula: ScoreExpression) -> str:
    """Add a score expression, see ``aucmax.base.expression``."""
    units = formula.units
    if units is None:
        linear = graph.add("MatMul", X, formula.weights)
        return graph.add("Add", linear, [formula.intercept])
    scaling = formula.scaling
    chosen = graph.add("Gather", X, scaling.columns, axis=1)
    scaled = graph.add("Mul", graph.add("Sub", chosen, scaling.centre), scaling.unit)
    z = graph.add("Min", graph.add("Max", scaled, scaling.low), scaling.high)
    linear = graph.add("MatMul", z, formula.weights)
    angles = graph.add("Add", graph.add("MatMul", z, units.directions), units.phases)
    if units.kind == GAUSSIAN:
        halves = graph.add("Mul", graph.add("ReduceSumSquare", z, axes=[1]), [-0.5])
        values = graph.add("Exp", graph.add("Add", angles, halves))
    else:
        values = graph.add("Cos", angles)
    nonlinear = graph.add("MatMul", values, units.amplitudes)
    return graph.add("Add", graph.add("Add", linear, nonlinear), [formula.intercept])


def _tensor(name: str, values: NDArray[Any]) -> Any:
    from onnx import helper

    values = np.ascontiguousarray(values)
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    return helper.make_tensor(name, kind, values.shape, values.tobytes(), raw=True)
