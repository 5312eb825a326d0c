"""Models as graphs of ONNX: what ``aucmax export`` writes.

Rows X, double (n, features), come in, and a score for each of them, double (n,), comes
out. Trees are an operation of ONNX's own, which adds up values as float32.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.base.expression import GAUSSIAN, ScoreExpression
from aucmax.blend.classifier import AUCClassifier
from aucmax.blend.forest import LEAF, Forest
from aucmax.blend.frequent import Frequent
from aucmax.blend.trees import NEAR, BoostedTrees, RandomizedTrees
from aucmax.workflows.score import Model

_MOST_NAMES = 10_000  # those of hashed features say nothing
_DOUBLE = 11  # a type, as ONNX counts them


def to_onnx(model: Model) -> bytes:
    """Return the model as a file of ONNX."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise ImportError("ONNX needs a package: pip install 'aucmax[onnx]'") from None
    graph = _Graph()
    try:
        score = _score(graph, "X", model.estimator)
    except TypeError as error:
        raise ValueError(f"It cannot be written as ONNX: {error}") from None
    graph.add("Identity", score, output="score")
    drawn = helper.make_graph(
        [helper.make_node(op, *ends, **how) for op, ends, how in graph.nodes],
        "aucmax",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", model.width])],
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["n"])],
        [_tensor(name, values) for name, values in graph.constants.items()],
    )
    # Old versions, which every runtime reads.
    versions = [helper.make_opsetid("", 13)]
    if graph.has_trees:
        versions.append(helper.make_opsetid("ai.onnx.ml", 3))
    proto = helper.make_model(
        drawn, producer_name="aucmax", ir_version=8, opset_imports=versions
    )
    about = {
        "class": type(model.estimator).__name__,
        "positive": str(model.task()),
        "recipe": json.dumps(model.recipe),
    }
    if model.width <= _MOST_NAMES:
        about["features"] = json.dumps(model.names())
    helper.set_model_props(proto, about)
    checker.check_model(proto)
    return bytes(proto.SerializeToString())


class _Graph:
    """Nodes and constants; names are given as they come."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, tuple[list[str], list[str]], dict[str, Any]]] = []
        self.constants: dict[str, NDArray[Any]] = {}
        self.has_trees = False

    def add(self, op: str, *inputs: Any, output: str = "", **how: Any) -> str:
        """Add a node, numbers among its inputs as constants; return its output."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        output = output or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append((op, (names, [output]), how))
        return output

    def constant(self, values: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(values)
        return name


def _score(graph: _Graph, X: str, estimator: Any) -> str:
    """Add the score of an estimator; return its name."""
    if isinstance(estimator, AUCClassifier):
        return _blend(graph, X, estimator)
    if isinstance(estimator, Frequent):
        seen = graph.add("Gather", X, estimator.chosen_.astype(np.int64), axis=1)
        return _score(graph, seen, estimator.estimator_)
    if isinstance(estimator, BoostedTrees):
        total = _forest(graph, X, estimator.forest_)
        return graph.add("Add", total, [estimator.offset_])
    if isinstance(estimator, RandomizedTrees):
        total = _forest(graph, X, estimator.forest_)
        mean = graph.add("Div", total, [float(len(estimator.forest_.roots))])
        low = graph.add("Max", mean, [NEAR])
        p = graph.add("Min", low, [1.0 - NEAR])
        rest = graph.add("Sub", [1.0], p)
        return graph.add("Log", graph.add("Div", p, rest))
    expression = estimator.expression()
    if expression is None:
        raise ValueError(
            f"{type(estimator).__name__} cannot be exported: its score has nonlinear "
            "members. Train it with nonlinear=False, or use a Chain."
        )
    return _formula(graph, X, expression)


def _blend(graph: _Graph, X: str, estimator: AUCClassifier) -> str:
    X = _filled(graph, X, estimator._fill)
    slope, total = estimator._odds[0], graph.constant([estimator._odds[1]])
    for models, (mean, unit, w) in zip(
        estimator.members_.values(), estimator._blend.T, strict=True
    ):
        scores = [_score(graph, X, model) for model in models]
        centred = graph.add("Sub", graph.add("Sum", *scores), [mean * len(models)])
        part = graph.add("Mul", centred, [slope * w / unit / len(models)])
        total = graph.add("Add", total, part)
    return total


def _filled(graph: _Graph, X: str, fill: Any) -> str:
    """Add what is to be done about missing numbers."""
    if not len(fill.median):
        return X
    missing = graph.add("IsNaN", X)
    filled = graph.add("Where", missing, fill.median, X)
    if not len(fill.flagged):
        return filled
    flags = graph.add("Gather", missing, fill.flagged, axis=1)
    return graph.add("Concat", filled, graph.add("Cast", flags, to=_DOUBLE), axis=1)


def _forest(graph: _Graph, X: str, forest: Forest) -> str:
    """Add trees; of a node, "true" is left."""
    graph.has_trees = True
    n, leaf = len(forest.feature), forest.feature == LEAF
    place = np.arange(n)
    tree = np.searchsorted(forest.roots, place, side="right") - 1
    own = place - forest.roots[tree]
    right = np.where(leaf, 0, forest.right - forest.roots[tree])
    values = graph.add(
        "TreeEnsembleRegressor",
        X,
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=tree,
        nodes_nodeids=own,
        nodes_featureids=np.where(leaf, 0, forest.feature),
        nodes_modes=["LEAF" if one else "BRANCH_LEQ" for one in leaf],
        nodes_values_as_tensor=_tensor("", np.where(leaf, 0.0, forest.number)),
        nodes_truenodeids=np.where(leaf, 0, own + 1),
        nodes_falsenodeids=right,
        target_treeids=tree[leaf],
        target_nodeids=own[leaf],
        target_ids=np.zeros(np.count_nonzero(leaf), int),
        target_weights_as_tensor=_tensor("", forest.number[leaf]),
    )
    single = graph.add("Reshape", values, np.array([-1]))
    return graph.add("Cast", single, to=_DOUBLE)


def _formula(graph: _Graph, X: str, formula: ScoreExpression) -> str:
    """Add a formula, see ``aucmax.base.expression``."""
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
        squares = graph.add("ReduceSumSquare", z, axes=[1])
        halves = graph.add("Mul", squares, [-0.5])
        waves = graph.add("Exp", graph.add("Add", angles, halves))
    else:
        waves = graph.add("Cos", angles)
    both = graph.add("Add", linear, graph.add("MatMul", waves, units.amplitudes))
    return graph.add("Add", both, [formula.intercept])


def _tensor(name: str, values: NDArray[Any]) -> Any:
    from onnx import helper

    values = np.ascontiguousarray(values)
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    return helper.make_tensor(name, kind, values.shape, values.tobytes(), raw=True)
