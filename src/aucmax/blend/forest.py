"""Decision trees as plain arrays, which are safe to load from model files.

A node has a feature, a threshold and a right child. Rows with ``x[feature] <=
threshold`` go to the next node, others to the right child. A leaf has the feature -1
and a value. Children come after their parent, so every path ends, even if the arrays
come from an untrusted file.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import kernel
from aucmax.core.rows import Float
from aucmax.core.threads import in_threads
from aucmax.storage.storable import whole_numbers

Ints = NDArray[np.int32]
Nodes = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # feature, number, right

LEAF = -1
_BLOCK = 1 << 18  # values of rows that a thread scores at a time


class Forest(NamedTuple):
    """Trees whose leaf values are summed."""

    feature: Ints  # (nodes,)
    number: Float  # (nodes,) threshold, or value of a leaf
    right: Ints  # (nodes,) right child, counted over all nodes; 0 in a leaf
    roots: Ints  # (trees,) first node of each tree

    @classmethod
    def of(cls, trees: Iterable[Nodes]) -> "Forest":
        """Return the forest of trees, in which right children count from the root."""
        nodes = list(trees)
        sizes = [len(feature) for feature, _, _ in nodes]
        roots = np.cumsum([0, *sizes[:-1]])
        feature, number, right = map(np.concatenate, zip(*nodes, strict=True))
        right = np.where(feature == LEAF, 0, right + np.repeat(roots, sizes))
        return cls(
            feature.astype(np.int32),
            number.astype(np.float64),
            right.astype(np.int32),
            roots.astype(np.int32),
        )

    @classmethod
    def of_ensemble(cls, model: Any, centre: Float, scale: Float) -> "Forest":
        """Return the trees of scikit-learn's ``ExtraTreesClassifier``.

        It was fitted to ``(X - centre) / scale``. Values are shares of positives.
        """
        return cls.of(_cart(tree.tree_, centre, scale) for tree in model.estimators_)

    @classmethod
    def of_boosting(cls, model: Any) -> "Forest":
        """Return the trees of scikit-learn's ``HistGradientBoostingClassifier``."""
        return cls.of(_boosted(tree.nodes) for (tree,) in model._predictors)

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
        return cls(
            feature.astype(np.int32),
            number,
            right.astype(np.int32),
            roots.astype(np.int32),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store, in the smallest exact types."""
        index = np.int16 if self.feature.max(initial=0) < 1 << 15 else np.int32
        with np.errstate(over="ignore"):
            rounded = self.number.astype(np.float32)
        exact = np.array_equal(rounded, self.number)
        return {
            "feature": self.feature.astype(index),
            "number": rounded if exact else self.number,
            "right": self.right,
            "roots": self.roots,
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
                below = X[i, nodes.feature[at]] <= nodes.number[at]
                at = at + 1 if below else nodes.right[at]
            out[i] += nodes.number[at]


def _cart(tree: Any, centre: Float, scale: Float) -> Nodes:
    """Return the nodes of a tree of an ensemble, in the units of the data."""
    leaf = tree.children_left == -1
    _check_order(leaf, tree.children_left)
    number = tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1)
    feature = tree.feature[~leaf]
    # Trees compare float32 values, so rounding a threshold down changes no result.
    threshold = tree.threshold[~leaf]
    lower = threshold.astype(np.float32)
    lower[lower > threshold] = np.nextafter(lower[lower > threshold], -np.inf)
    number[leaf] = number[leaf].astype(np.float32)
    number[~leaf] = lower * scale[feature] + centre[feature]
    return np.where(leaf, LEAF, tree.feature), number, tree.children_right


def _check_order(leaf: NDArray[Any], left: NDArray[Any]) -> None:
    """Raise an error unless each left child directly follows its parent."""
    if not (leaf | (left == np.arange(len(leaf)) + 1)).all():
        import sklearn

        raise RuntimeError(
            f"scikit-learn {sklearn.__version__} stores the nodes of trees in an order "
            "that this version of aucmax does not support. Install an older "
            "scikit-learn or a newer aucmax."
        )


def _boosted(nodes: Any) -> Nodes:
    """Return the nodes of a tree of gradient boosting."""
    leaf = nodes["is_leaf"].astype(bool)
    _check_order(leaf, nodes["left"])
    number = np.where(leaf, nodes["value"], nodes["num_threshold"])
    return np.where(leaf, LEAF, nodes["feature_idx"]), number, nodes["right"]
