"""Decision trees as plain arrays, which are safe to load from model files.

A node has a feature, a number, a kind and a right child. Where it splits numbers, rows
with ``x[feature] <= number`` go to the next node, others to the right child; its kind
says where a missing value goes. Where it splits categories, rows whose code is in a set
go to the next node. A leaf has the feature -1 and a value. Children come after their
parent, so every path ends, even if the arrays come from an untrusted file.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import kernel
from aucmax.core.rows import Float
from aucmax.core.threads import in_threads
from aucmax.storage.state import whole_numbers

Ints = NDArray[np.int32]
Kinds = NDArray[np.uint8]

LEAF = -1
MISSING_LEFT, MISSING_RIGHT, CATEGORICAL = 0, 1, 2  # kinds of nodes
_WORD = 32  # bits of a word of a set
_MAX = np.finfo(np.float64).max
_BLOCK = 1 << 18  # values of rows that a thread scores at a time


class Nodes(NamedTuple):
    """The nodes of one tree; children and sets are numbered within it."""

    feature: NDArray[Any]
    number: NDArray[Any]
    right: NDArray[Any]
    kind: NDArray[Any]
    sets: list[NDArray[np.uint32]]  # of its categorical nodes, in their order


class Forest(NamedTuple):
    """Trees whose leaf values are summed."""

    feature: Ints  # (nodes,)
    number: Float  # (nodes,) threshold, number of a set, or value of a leaf
    right: Ints  # (nodes,) right child, counted over all nodes; 0 in a leaf
    roots: Ints  # (trees,) first node of each tree
    kind: Kinds  # (nodes,) of the split
    sets: NDArray[np.uint32]  # bits of the codes in all sets, one set after another
    bounds: Ints  # (sets + 1,) where each set begins in ``sets``

    @classmethod
    def of(cls, trees: Iterable[Nodes]) -> "Forest":
        """Return the forest of trees."""
        nodes = list(trees)
        sizes = [len(tree.feature) for tree in nodes]
        roots = np.cumsum([0, *sizes[:-1]])
        feature, number, right, kind = map(
            np.concatenate, zip(*(tree[:4] for tree in nodes), strict=True)
        )
        sets = [one for tree in nodes for one in tree.sets]
        number[kind == CATEGORICAL] = np.arange(len(sets))
        right = np.where(feature == LEAF, 0, right + np.repeat(roots, sizes))
        return cls(
            feature.astype(np.int32),
            number.astype(np.float64),
            right.astype(np.int32),
            roots.astype(np.int32),
            kind.astype(np.uint8),
            np.concatenate([np.zeros(0, np.uint32), *sets]),
            np.cumsum([0, *map(len, sets)]).astype(np.int32),
        )

    @classmethod
    def of_lightgbm(cls, booster: Any, n_trees: int, middle: Float) -> "Forest":
        """Return the first trees of LightGBM's ``Booster``.

        In a column without missing values in training, a missing value goes where the
        ``middle`` of the column goes.
        """
        text = booster.model_to_string(num_iteration=n_trees)
        trees = text.split("\n\nend of trees")[0].split("Tree=")[1:]
        return cls.of(_lightgbm(tree, middle) for tree in trees)

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> "Forest":
        """Return the forest of stored arrays; raise a ValueError if invalid."""
        number, n = np.asarray(arrays["number"], np.float64), len(arrays["number"])
        for name in ("feature", "number", "right"):
            if arrays[name].shape != (n,):
                raise ValueError(
                    f"{name!r} of the trees has shape {arrays[name].shape}, expected "
                    f"({n},)."
                )
        if not np.isfinite(number).all():
            raise ValueError("thresholds or leaf values of the trees are not finite.")
        feature = whole_numbers("features", arrays["feature"], LEAF, n_features - 1)
        right = whole_numbers("nodes", arrays["right"], 0, n - 1)
        roots = whole_numbers("roots", arrays["roots"], 0, n - 1)
        if roots.ndim != 1 or not len(roots) or roots[0] or (np.diff(roots) < 1).any():
            raise ValueError("'roots' of the trees must start at 0 and increase.")
        end = np.repeat(np.append(roots[1:], n), np.diff(roots, append=n))
        inside = (right > np.arange(n) + 1) & (right < end)
        if not ((feature == LEAF) | inside).all():
            raise ValueError("a node of the trees has an invalid right child.")
        kind = whole_numbers("kinds", arrays["kind"], 0, CATEGORICAL)
        words = whole_numbers("sets", arrays["sets"], -(2**31), 2**31 - 1)
        sets = words.astype(np.int32).view(np.uint32)
        bounds = whole_numbers("sets", arrays["bounds"], 0, len(sets))
        known = number[(feature != LEAF) & (kind == CATEGORICAL)]
        if (
            (kind.shape != (n,) or sets.ndim != 1 or bounds.ndim != 1)
            or (not len(bounds) or (np.diff(bounds) < 0).any())
            or not np.isin(known, np.arange(len(bounds) - 1)).all()
        ):
            raise ValueError("the sets of categories of the trees are invalid.")
        return cls(
            feature.astype(np.int32),
            number,
            right.astype(np.int32),
            roots.astype(np.int32),
            kind.astype(np.uint8),
            sets,
            bounds.astype(np.int32),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store, in the smallest exact types."""
        index = np.int16 if self.feature.max(initial=0) < 1 << 15 else np.int32
        return {
            "feature": self.feature.astype(index),
            "number": self.number,
            "right": self.right,
            "roots": self.roots,
            "kind": self.kind.astype(np.int16),
            "sets": self.sets.view(np.int32),
            "bounds": self.bounds,
        }

    def scores(self, X: Any) -> Float:
        """Return the sum of the trees' values for each row."""
        nodes, width = self, X.shape[1]
        columns: Any = slice(None)
        if sparse.issparse(X):  # only features of the trees become dense
            used, position = np.unique(self.feature, return_inverse=True)
            first = int(used[0] == LEAF)
            nodes = self._replace(feature=(position - first).astype(np.int32))
            columns, width = used[first:], len(used) - first
        size = max(_BLOCK // max(width, 1), 1)
        starts = range(0, X.shape[0], size)

        def score_block(start: int) -> Float:
            rows = X[start : start + size][:, columns]
            rows = rows.toarray() if sparse.issparse(rows) else rows
            out = np.zeros(rows.shape[0])
            _add(np.ascontiguousarray(rows, np.float64), nodes, out)
            return out

        run = in_threads if len(starts) > 1 else map
        return np.concatenate([np.zeros(0), *run(score_block, starts)])


@kernel
def _add(X: Float, nodes: Forest, out: Float) -> None:
    """Add the values of all trees to ``out``."""
    for root in nodes.roots:  # tree by tree, so that a tree stays in the cache
        for i in range(len(X)):
            at = root
            while nodes.feature[at] >= 0:
                x, kind = X[i, nodes.feature[at]], nodes.kind[at]
                if kind == CATEGORICAL:
                    left = _contains(nodes, int(nodes.number[at]), x)
                elif np.isnan(x):
                    left = kind == MISSING_LEFT
                else:
                    left = x <= nodes.number[at]
                at = at + 1 if left else nodes.right[at]
            out[i] += nodes.number[at]


@kernel
def _contains(nodes: Forest, which: int, x: float) -> bool:
    """Return whether a set has the code ``x``."""
    first, end = nodes.bounds[which], nodes.bounds[which + 1]
    if not 0.0 <= x < _WORD * (end - first):  # or missing
        return False
    code = int(x)
    word = nodes.sets[first + code // _WORD]
    return (word >> np.uint32(code % _WORD)) & np.uint32(1) != 0


_DEFAULT_LEFT, _MISSING_TYPE, _NAN = 2, 12, 8  # bits of LightGBM's decision types


def _lightgbm(text: str, middle: Float) -> Nodes:
    """Return the nodes of a tree, as LightGBM writes it."""
    fields = dict(line.split("=", 1) for line in text.splitlines()[1:] if "=" in line)

    def array(name: str, kind: Any) -> NDArray[Any]:
        return np.array(fields.get(name, "").split(), dtype=kind)

    value = array("leaf_value", np.float64)
    if len(value) == 1:
        return Nodes(np.array([LEAF]), value, np.zeros(1, int), np.zeros(1), [])
    split = array("split_feature", int)
    threshold = np.clip(
        array("threshold", np.float64), -_MAX, _MAX
    )  # some are infinite
    decision = array("decision_type", int)
    children = array("left_child", int), array("right_child", int)
    bounds, words = array("cat_boundaries", int), array("cat_threshold", np.uint32)
    known = (decision & _MISSING_TYPE) != _NAN  # LightGBM takes missing ones for zero
    goes_left = np.where(known, middle[split] <= threshold, decision & _DEFAULT_LEFT)
    kind = np.where(goes_left, MISSING_LEFT, MISSING_RIGHT)
    kind[decision % 2 == 1] = CATEGORICAL
    n = 2 * len(value) - 1
    feature, number = np.full(n, LEAF), np.empty(n)
    right, kinds, sets = np.zeros(n, int), np.zeros(n, int), []
    open_nodes, at = [(0, -1)], 0  # a node of LightGBM, and the parent it is right of
    while open_nodes:
        node, parent = open_nodes.pop()
        if parent >= 0:
            right[parent] = at
        if node < 0:
            number[at] = value[~node]
        else:
            feature[at], number[at], kinds[at] = (
                split[node],
                threshold[node],
                kind[node],
            )
            if kind[node] == CATEGORICAL:
                which = int(threshold[node])
                sets.append(words[bounds[which] : bounds[which + 1]])
            open_nodes += [(children[1][node], at), (children[0][node], -1)]
        at += 1
    return Nodes(feature, number, right, kinds, sets)
