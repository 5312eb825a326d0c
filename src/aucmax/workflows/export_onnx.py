"""Export models as ONNX graphs or as JSON.

The ONNX graph takes rows X, double (n, features), and returns a score for each of them,
double (n,). Trees use ONNX's own operator, which sums in float32.
"""

import json
from typing import Any

import numpy as np

from aucmax.base.interfaces import GAUSSIAN, ScoreExpression
from aucmax.blend.classifier import AUCClassifier
from aucmax.blend.frequent import Frequent
from aucmax.blend.trees import NEAR, RandomizedTrees
from aucmax.stream.auc_stream import AUCStream
from aucmax.stream.tree_columns import TreeScore
from aucmax.workflows.onnx_blend import blend, forest, terms
from aucmax.workflows.onnx_graph import Graph, tensor
from aucmax.workflows.score import Model

_MAX_NAMES = 10_000  # features; wider models have mostly hashed ones, without names


def to_json(model: Model) -> dict[str, Any]:
    """Return the score expression of a model, for JSON.

    Weights of zero are omitted. Models with a feature map have "scaling" and "units",
    see ``aucmax.base.interfaces``.
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
    graph = Graph()
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
        [tensor(name, values) for name, values in graph.constants.items()],
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


def _score(graph: Graph, X: str, estimator: Any) -> str:
    """Add the score of an estimator; return the name of the output."""
    if isinstance(estimator, AUCClassifier):
        return blend(graph, X, estimator, _score)
    if isinstance(estimator, Frequent):
        chosen = graph.add("Gather", X, estimator.chosen_.astype(np.int64), axis=1)
        return _score(graph, chosen, estimator.estimator_)
    if isinstance(estimator, RandomizedTrees):
        total = forest(graph, X, estimator.forest_)
        mean = graph.add("Div", total, [float(len(estimator.forest_.roots))])
        p = graph.add("Min", graph.add("Max", mean, [NEAR]), [1.0 - NEAR])
        return graph.add("Log", graph.add("Div", p, graph.add("Sub", [1.0], p)))
    if isinstance(estimator, AUCStream):
        blended = estimator.blended_score()
        if blended.trees is not None and not blended.mapped:
            linear = ScoreExpression(blended.intercept, blended.w)
            trees = _stream_trees(graph, X, blended.trees)
            trees = graph.add("Mul", trees, [blended.tree_weight])
            return graph.add("Add", _expression(graph, X, linear), trees)
    expression = estimator.expression()
    if expression is None:
        raise _not_one_expression(estimator, "ONNX")
    return _expression(graph, X, expression)


def _stream_trees(graph: Graph, X: str, score: TreeScore) -> str:
    """Add the score of the trees of a stream: columns with codes, then their terms."""
    columns, trees = score.columns, score.forest
    if not columns.has_codes:
        return forest(graph, X, trees.trees)
    matrix, offset = columns.code_matrix()
    codes = graph.add("MatMul", graph.add("Abs", X), matrix)
    codes = graph.add("Add", codes, offset)
    rows = graph.add("Gather", X, columns.kept(), axis=1)
    rows = graph.add("Concat", rows, codes, axis=1)
    if trees.encoding is not None:
        encoded = terms(graph, rows, trees.levels, trees.encoding)
        rows = graph.add("Concat", rows, encoded, axis=1)
    return forest(graph, rows, trees.trees)


def _not_one_expression(estimator: Any, form: str) -> ValueError:
    remedy = "Train it with nonlinear=False, or use a Chain."
    if isinstance(estimator, AUCClassifier):
        remedy = "Export it to ONNX, or train a single model with --fast."
    if isinstance(estimator, AUCStream) and form != "ONNX":
        remedy = "Export it to ONNX, or train it with nonlinear=False."
    return ValueError(
        f"Cannot export to {form}: the score of {type(estimator).__name__} is not one "
        f"linear or kernel expression. {remedy}"
    )


def _expression(graph: Graph, X: str, formula: ScoreExpression) -> str:
    """Add a score expression, see ``aucmax.base.interfaces``."""
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
