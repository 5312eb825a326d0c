"""A blend as an ONNX graph: columns, features, target encoding, trees."""

from collections.abc import Callable
from typing import Any

import numpy as np

from aucmax.blend.boosting import BoostedTrees
from aucmax.blend.classifier import AUCClassifier
from aucmax.blend.columns import FeatureView
from aucmax.blend.forest import CATEGORICAL, LEAF, MISSING_LEFT, Forest
from aucmax.blend.integer_codes import IntegerCodes
from aucmax.blend.target_encoded import TargetEncoded
from aucmax.blend.target_encoding import TargetEncoding
from aucmax.workflows.onnx_graph import DOUBLE, INT64, Graph, tensor

_ML = "ai.onnx.ml"
_NONE = np.iinfo(np.int64).min  # a code that no value has

Score = Callable[[Graph, str, Any], str]


def blend(graph: Graph, X: str, estimator: AUCClassifier, score: Score) -> str:
    """Add the score of a blend; ``score`` adds that of a model on features."""
    columns, features = X, X
    layout = estimator._layout
    if layout.view is not None:
        width = len(layout.levels)
        columns = _with_codes(graph, _slice(graph, X, 0, width), layout.codes)
        features = _features(graph, columns, layout.view)
        if layout.width > width:
            words = _slice(graph, X, width, layout.width)
            features = graph.add("Concat", features, words, axis=1)
    slope, total = estimator._odds[0], graph.constant([estimator._odds[1]])
    for models, (mean, deviation, weight) in zip(
        estimator.members_.values(), estimator._blend.T, strict=True
    ):
        scores = [_model(graph, columns, features, model, score) for model in models]
        centred = graph.add("Sub", graph.add("Sum", *scores), [mean * len(models)])
        part = graph.add("Mul", centred, [slope * weight / deviation / len(models)])
        total = graph.add("Add", total, part)
    return total


def _model(graph: Graph, columns: str, features: str, model: Any, score: Score) -> str:
    if isinstance(model, BoostedTrees):
        rows = columns
        if model.encoding_ is not None:
            encoded = terms(graph, columns, model.levels_, model.encoding_)
            rows = graph.add("Concat", rows, encoded, axis=1)
        total = forest(graph, rows, model.forest_)
        return graph.add("Add", total, [model.offset_])
    if isinstance(model, TargetEncoded):
        encoded = terms(graph, columns, model.levels_, model.encoding_)
        rows = graph.add("Concat", features, encoded, axis=1)
        return score(graph, rows, model.estimator_)
    return score(graph, features, model)


def _slice(graph: Graph, X: str, start: int, end: int) -> str:
    return graph.add("Gather", X, np.arange(start, end), axis=1)


def _with_codes(graph: Graph, columns: str, codes: IntegerCodes) -> str:
    """Add the codes of numbers that are codes."""
    parts, start = [columns], 0
    for column, end in zip(codes.columns.tolist(), codes.ends.tolist(), strict=True):
        number = _slice(graph, columns, column, column + 1)
        missing = graph.add("IsNaN", number)
        known = graph.add("Where", missing, [float(_NONE)], number)
        keys = codes.values[start:end].astype(np.int64)
        code = _lookup(graph, known, keys, np.arange(len(keys)), float(len(keys)))
        parts.append(graph.add("Where", missing, [np.nan], code))
        start = end
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else columns


def _lookup(graph: Graph, X: str, keys: Any, values: Any, default: float) -> str:
    """Add the value of each whole number."""
    graph.has_trees = True  # the same domain
    found = graph.add(
        "LabelEncoder",
        graph.add("Cast", X, to=INT64),
        domain=_ML,
        keys_int64s=keys.tolist() or [int(_NONE)],
        values_floats=values.tolist() or [default],
        default_float=default,
    )
    return graph.add("Cast", found, to=DOUBLE)


def _features(graph: Graph, columns: str, view: FeatureView) -> str:
    """Add medians and flags of missing numbers, and features of categories."""
    is_number = view.levels == 0
    parts = []
    if is_number.any():
        numbers = columns
        if not is_number.all():
            numbers = graph.add("Gather", columns, np.flatnonzero(is_number), axis=1)
        missing = graph.add("IsNaN", numbers)
        numbers = graph.add("Where", missing, view.median[is_number], numbers)
        parts.append(numbers)
    if len(view.flagged):
        flagged = graph.add("Gather", columns, view.flagged, axis=1)
        parts.append(graph.add("Cast", graph.add("IsNaN", flagged), to=DOUBLE))
    if len(view.onehot):
        categories = np.flatnonzero(view.levels)
        sizes = view.levels[categories] + 1
        owner = np.repeat(np.arange(len(sizes)), sizes)[view.onehot]
        code = (view.onehot - (np.cumsum(sizes) - sizes)[owner]).astype(np.float64)
        codes = graph.add("Gather", _codes(graph, columns, view.levels), owner, axis=1)
        parts.append(graph.add("Cast", graph.add("Equal", codes, code), to=DOUBLE))
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _codes(graph: Graph, columns: str, levels: Any) -> str:
    """Add the codes of categories as numbers, of which the last one is "missing"."""
    categories = np.flatnonzero(levels)
    sizes = levels[categories].astype(np.float64)
    found = graph.add("Gather", columns, categories, axis=1)
    # A comparison with a missing value is false.
    known = graph.add(
        "And",
        graph.add("GreaterOrEqual", found, [0.0]),
        graph.add("Less", found, sizes),
    )
    return graph.add("Where", known, found, sizes)


def terms(graph: Graph, columns: str, levels: Any, encoding: TargetEncoding) -> str:
    """Add log-odds of all terms, then the logarithms of their rows."""
    codes = _codes(graph, columns, levels)
    sizes = (levels[levels > 0] + 1).astype(np.float64)
    odds, counts, start = [], [], 0
    ends = encoding.key_ends.tolist()
    for term, end, default in zip(encoding.terms, ends, encoding.defaults, strict=True):
        chosen = graph.add("Gather", codes, np.array(term), axis=1)
        factors = [float(np.prod(sizes[term[k + 1 :]])) for k in range(len(term))]
        key = graph.add("MatMul", chosen, np.array(factors)[:, np.newaxis])
        keys = encoding.keys[start:end]
        values = encoding.odds[start:end], encoding.counts[start:end]
        odds.append(_lookup(graph, key, keys, values[0], float(default)))
        counts.append(_lookup(graph, key, keys, values[1], 0.0))
        start = end
    return graph.add("Concat", *odds, *counts, axis=1)


def forest(graph: Graph, X: str, trees: Forest) -> str:
    """Add the sum of trees; the "true" branch is the left one, the next node.

    A set of categories is a chain of nodes, each of which compares with one code; their
    "true" branches lead to the same node.
    """
    graph.has_trees = True
    leaf = trees.feature == LEAF
    tree = np.searchsorted(trees.roots, np.arange(len(leaf)), side="right") - 1
    extra = [_members(trees, at) for at in range(len(leaf))]
    # The first node of a chain has the number of the node; others follow the last one.
    sizes = np.bincount(tree, minlength=len(trees.roots))
    nodes: list[tuple[int, int, int, str, float, int, int, int]] = []
    following = sizes.copy()
    for at, (first, root) in enumerate(zip(leaf, trees.roots[tree], strict=True)):
        number, k = at - int(root), int(tree[at])
        if first:
            nodes.append((k, number, 0, "LEAF", 0.0, 0, 0, 0))
            continue
        left, right = number + 1, int(trees.right[at] - root)
        feature, kind = int(trees.feature[at]), int(trees.kind[at])
        if kind != CATEGORICAL:
            to_left = int(kind == MISSING_LEFT)
            value = float(trees.number[at])
            nodes.append(
                (k, number, feature, "BRANCH_LEQ", value, left, right, to_left)
            )
            continue
        chain = extra[at] or [-1]
        for place, code in enumerate(chain):
            last = place == len(chain) - 1
            after = right if last else int(following[k])
            following[k] += not last
            nodes.append((k, number, feature, "BRANCH_EQ", float(code), left, after, 0))
            number = after
    columns = [np.array(column) for column in zip(*nodes, strict=True)]
    ids, numbers, features, modes, values, lefts, rights, missing = columns
    is_leaf = modes == "LEAF"
    total = graph.add(
        "TreeEnsembleRegressor",
        X,
        domain=_ML,
        n_targets=1,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=ids,
        nodes_nodeids=numbers,
        nodes_featureids=features,
        nodes_modes=modes.tolist(),
        nodes_values_as_tensor=tensor("", values),
        nodes_truenodeids=lefts,
        nodes_falsenodeids=rights,
        nodes_missing_value_tracks_true=missing,
        target_treeids=ids[is_leaf],
        target_nodeids=numbers[is_leaf],
        target_ids=np.zeros(np.count_nonzero(is_leaf), int),
        target_weights_as_tensor=tensor("", trees.number[leaf]),
    )
    single = graph.add("Reshape", total, np.array([-1]))
    return graph.add("Cast", single, to=DOUBLE)


def _members(trees: Forest, at: int) -> list[int]:
    """Return the codes in the set of a categorical node."""
    if trees.feature[at] == LEAF or trees.kind[at] != CATEGORICAL:
        return []
    which = int(trees.number[at])
    words = trees.sets[trees.bounds[which] : trees.bounds[which + 1]]
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).tolist()
