"""BAM with penalty and loss chosen by cross-validation along a path of penalties.

Penalties decrease along the path, and each minimum starts from the one before. Folds
are weights of zero, so no row is copied, and the scores of held-out rows come with
those of the others. The statistics of the features (their covariances) are shared by
all folds, penalties and losses.

The penalty applies to the weights of features of unit scale: no ridge on raw weights
suits both a feature in thousands and one in thousandths. Which scale is best depends on
the data. Rare features have small standard deviations, which leaves their weights
nearly unpenalised: right where they are informative and few (german), wrong where there
are many (a9a). As few rows cannot decide this, the standard deviations are used unless
the other scale is clearly better.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from aucmax.base.folds import area, folds, left_out, path_table, penalties
from aucmax.base.penalty import squared_sizes
from aucmax.base.ranker import GRADIENT, LinearRanker
from aucmax.core.rows import Float, Index
from aucmax.core.threads import in_threads, one_blas_thread, one_thread
from aucmax.linear.bam import (
    LOSSES,
    FeatureStatistics,
    cut_short,
    feature_statistics,
    minimise,
)
from aucmax.linear.solvers.newton import Coordinates, Ridge
from aucmax.losses.pairwise import shares
from aucmax.storage.state import Spec

AUTO = ("squared_hinge", "logistic")

# Tolerance in a fold: the AUC is then accurate to about 1e-4, below its sampling error.
_FOLD_TOL = 5e-3
_ALIKE = 2.0  # scales within this factor count as equal
# The path ends at this ridge, for features of unit scale, or after so many decades if
# there are too many features for covariances.
_LEAST, _DECADES = 5e-7, 6.0
_SMALL = 0.25  # quantile of the variances that _LEAST is relative to


class ScaledStatistics(FeatureStatistics):
    """Feature statistics for the ridge (l2/2) Σ (scale w)²."""

    def __init__(self, stats: FeatureStatistics, scale: Float) -> None:
        super().__init__(stats.X, stats.varies, stats.moments, stats.H, stats.system)
        self.scale = np.where(self.varies, scale, 0.0)
        self.square = self.scale**2
        self._known: dict[float, Coordinates] = {}

    def coordinates(self, l2: Ridge) -> Coordinates:
        """Return coordinates in which the curvature at zero is about one."""
        key = float(np.max(l2, initial=0.0))  # ridges differ by a factor only
        if key not in self._known:
            self._known[key] = super().coordinates(l2)
        return self._known[key]

    def penalty_path(self, count: int) -> Float:
        """Return penalties from one that shrinks all weights to a negligible one."""
        unit = 1.0 / np.where(self.varies, self.scale, np.inf)
        if self.H is None:
            high = 2.0 * (self.system.largest(unit) if self.system else 1.0)
            return np.geomspace(high, high * 10**-_DECADES, count)
        if not len(self.H):
            return np.geomspace(1.0, _LEAST, count)
        unit = unit[self.varies]
        H = self.H * unit * unit[:, np.newaxis]
        least = _LEAST * float(np.quantile(np.diag(H), _SMALL))
        return np.geomspace(2.0 * float(np.linalg.eigvalsh(H)[-1]), least, count)


def standard_deviations(stats: FeatureStatistics) -> Float:
    """Return the standard deviations of the features, over rows of both classes."""
    weight, _, mean, variance, _ = stats.moments
    share = weight / weight.sum()
    gap = mean[0] - mean[1]
    # From the class variances: a mean of squares far from zero is rounding error.
    return np.sqrt(share @ variance + share.prod() * gap**2)


def is_better(aucs: Float, others: Float) -> bool:
    """Return whether the best mean AUC is higher by more than its standard error."""
    flat, other = (a.reshape(-1, a.shape[-1]) for a in (aucs, others))
    gain = flat[flat.mean(axis=1).argmax()] - other[other.mean(axis=1).argmax()]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return bool(gain.mean() > error)


class Fold(NamedTuple):
    """The training rows and the held-out rows of a fold."""

    train: Index
    test: Index
    signed: Float  # of all rows
    weighted: bool

    def shares(self) -> Float:
        """Return shares that are zero for the held-out rows."""
        here = np.zeros_like(self.signed)
        here[self.train] = self.signed[self.train]
        return shares(here)

    def area(self, scores: Float) -> float:
        """Return the AUC on the held-out rows."""
        return area(scores[self.test], self.signed[self.test], self.weighted)


class Path(NamedTuple):
    """Regularisation path: the minimum for each penalty."""

    weights: list[Float]
    areas: list[float]  # AUC on the held-out rows
    n_iter: int  # largest number of steps of a penalty
    left: float  # largest gradient norm at which max_iter ended the search


class BAMCV(LinearRanker):
    r""":class:`BAM` with penalty and loss chosen by cross-validation.

    Minimises, for every :math:`l_2` of a path and every loss,

    .. math:: E\,\ell(w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \sum_j s_j^2 w_j^2

    on the training rows of each fold, and chooses penalty and loss by the highest mean
    AUC on the held-out rows. The scale :math:`s_j` of a feature makes the result
    independent of units.

    Parameters
    ----------
    l2s : int or array-like of shape (n_l2s,), default=12
        The penalties; or their number, on a geometric path from one that shrinks all
        weights to a negligible one.
    .. shared: cv
    loss : str or list of str, default="auto"
        A loss of :class:`BAM`, or several to choose from; "auto" is
        ["squared_hinge", "logistic"].
    scale : {"auto", "deviation", "size", "none"}, default="auto"
        The scales s: standard deviations; sizes of the nonzero values,
        :math:`s_j^2 = E[z_j^2 \mid z_j \ne 0]` for the difference z of a pair, which
        penalise rare features more; or ones, as in :class:`BAM`. "auto" takes the sizes
        if their ratio to the deviations varies by more than a factor of 2, and if the
        first loss has a higher AUC with them by more than a standard error.
    tol : float, default=1e-3
        As in :class:`BAM`; at least 5e-3 in the folds.
    max_iter : int, default=100
        Maximum number of Newton steps per penalty; one ``ConvergenceWarning`` is issued
        if any fit does not reach ``tol``.

    Attributes
    ----------
    .. shared: weights, intercept, classes, features, path
    n_iter_ : int
        Largest number of Newton steps of a penalty, on all rows.
    loss_ : str
        Loss with the highest mean AUC; the first of equal ones.
    scale_ : ndarray of shape (n_features,)
        The scales s: ``BAM(l2_, loss=loss_).fit(X / scale_, y)`` has the weights
        ``coef_ * scale_``. Zero for constant features.
    scores_ : ndarray of shape (n_l2s, n_folds)
        AUC on the held-out rows of each fold, with ``loss_``.
    loss_scores_ : ndarray of shape (n_losses, n_l2s, n_folds)
        AUC on the held-out rows for every loss, with ``scale_``.

    See Also
    --------
    BAM : One penalty and one loss.
    LeastSquaresAUCCV : The pairwise square loss, whose whole path costs one pass.

    Notes
    -----
    The sigmoid loss as a third candidate, ``loss=["squared_hinge", "logistic",
    "sigmoid"]``, at least doubles the time. It is the nearest to the AUC and can help
    if no linear ranker fits well: test AUC 0.831 instead of 0.828 on a split of
    covtype_sample, 0.681 instead of 0.675 on halves of higgs_sample.

    Paths of different folds and losses run in threads, one per core. Memory, without X,
    is about twenty numbers per row and thread, and d² numbers per penalty if
    covariances are used (at most 1024 features).

    References
    ----------
    .. [1] O. Chapelle, S. S. Keerthi, "Efficient algorithms for ranking with SVMs",
       Information Retrieval 13, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import BAMCV
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> model = BAMCV().fit(X, y)
    >>> print(f"AUC {model.path_['auc'].max():.2f} with the {model.loss_} loss")
    AUC 0.92 with the squared_hinge loss
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearRanker._parameter_constraints,
        "loss": [StrOptions({"auto", *LOSSES}), list, tuple],
        "scale": [StrOptions({"auto", "deviation", "size", "none"})],
    }
    stored: ClassVar[dict[str, Spec]] = dict.fromkeys(
        ("l2_", "scale_", "l2s_", "loss_scores_", "coef_path_"), Spec(finite=False)
    )

    n_iter_: int
    l2_: float
    scale_: Float
    l2s_: Float
    loss_scores_: Float
    coef_path_: Float

    def __init__(
        self,
        l2s: int | ArrayLike = 12,
        *,
        cv: Any = 5,
        loss: Any = "auto",
        scale: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 100,
    ) -> None:
        self.l2s = l2s
        self.cv = cv
        self.loss = loss
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._losses()  # raise errors before any work
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        stats = feature_statistics(self, X, rows, signed)
        parts = [
            Fold(train, left_out(signed, test), signed, sample_weight is not None)
            for train, test in folds(self.cv, X, signed, "BAM")
        ]
        self._search(stats, parts, shares(signed))

    def _search(
        self, stats: FeatureStatistics, parts: Sequence[Fold], everything: Float
    ) -> None:
        """Choose scale, loss and penalty; ``everything`` are shares of all rows."""
        losses, scales = self._losses(), self._scales(stats)
        with one_blas_thread():
            # The first loss chooses the scale for all.
            first = losses[:1] if len(scales) > 1 else losses
            areas, left = self._areas(scales, first, parts)
            best = int(len(scales) > 1 and is_better(areas[1], areas[0]))
            scaled = scales[best]
            (rest,), more = self._areas([scaled], losses[len(first) :], parts)
            self.loss_scores_ = np.concatenate([areas[best], rest])
            l2s = penalties(self.l2s, scaled.penalty_path)
            path = self._path(scaled, self.loss_, l2s, everything)
        # One warning for all fits, with the largest gradient.
        self._warn_above(self.tol, max(left, more, path.left), GRADIENT)
        best = int(np.argmax(self.scores_.mean(axis=1)))
        self.l2s_, self.l2_ = l2s, float(l2s[best])
        self.scale_ = scaled.scale
        self.n_iter_ = path.n_iter
        self.coef_path_ = np.array(path.weights)
        self._set_linear(path.weights[best].copy(), stats.moments.mean)

    def _scales(self, stats: FeatureStatistics) -> list[ScaledStatistics]:
        """Return the scales to choose from, the default one first."""
        if self.scale == "none":
            return [ScaledStatistics(stats, np.ones(self.n_features_in_))]
        scales = []
        if self.scale != "size":
            scales.append(ScaledStatistics(stats, standard_deviations(stats)))
        if self.scale != "deviation":
            squares = squared_sizes(stats.moments, stats.diagonal())
            scales.append(ScaledStatistics(stats, np.sqrt(squares)))
        if len(scales) > 1:
            ratio = scales[1].scale[stats.varies] / scales[0].scale[stats.varies]
            if ratio.max(initial=0.0) < _ALIKE * ratio.min(initial=np.inf):
                scales.pop()
        return scales

    def _areas(
        self, scales: list[ScaledStatistics], losses: list[str], parts: Sequence[Fold]
    ) -> tuple[Float, float]:
        """Return the AUC of each scale, loss, penalty and fold, and ``left`` of all."""
        l2s = [penalties(self.l2s, stats.penalty_path) for stats in scales]
        jobs = [
            (stats, loss, path, fold)
            for stats, path in zip(scales, l2s, strict=True)
            for loss in losses
            for fold in parts
        ]

        def one(job: tuple[ScaledStatistics, str, Float, Fold]) -> Path:
            with one_thread():  # one per path, not more within it
                return self._path(*job[:3], job[3].shares(), job[3])

        paths = list(in_threads(one, jobs))
        areas = np.array([path.areas for path in paths])
        shape = len(scales), len(losses), len(parts), len(l2s[0])
        left = max((path.left for path in paths), default=0.0)
        return areas.reshape(shape).swapaxes(2, 3), left

    def _path(
        self,
        stats: ScaledStatistics,
        loss: str,
        l2s: Float,
        share: Float,
        fold: Fold | None = None,
    ) -> Path:
        """Return the minima for all penalties, each starting from the one before."""
        tol = max(self.tol, _FOLD_TOL) if fold else self.tol
        objective, start = stats.objective(share, loss), None
        path = Path([], [], 0, 0.0)
        for l2 in l2s.tolist():
            ridge = l2 * stats.square
            with_ridge, at = objective.with_ridge(ridge), stats.coordinates(ridge)
            one = minimise(with_ridge, at, tol, self.max_iter, start)
            start = one.iterate
            path.weights.append(one.w)
            if fold:
                path.areas.append(fold.area(start.scores))
            path = path._replace(
                n_iter=max(path.n_iter, one.n_iter),
                left=max(path.left, cut_short(one, tol, self.max_iter)),
            )
        return path

    def _losses(self) -> list[str]:
        if isinstance(self.loss, str):
            return list(AUTO) if self.loss == "auto" else [self.loss]
        for loss in self.loss:
            if loss not in LOSSES:
                known = ", ".join(LOSSES)
                raise ValueError(
                    f"loss={self.loss!r}: {loss!r} must be one of {known}."
                )
        if not self.loss:
            raise ValueError("loss is empty: expected at least one loss.")
        return list(self.loss)

    @property
    def loss_(self) -> str:
        """The loss with the highest mean AUC."""
        means = self.loss_scores_.mean(axis=2).max(axis=1)
        return self._losses()[int(np.argmax(means))]

    @property
    def scores_(self) -> Float:
        """AUC on each fold, with ``loss_``."""
        means = self.loss_scores_.mean(axis=2).max(axis=1)
        return self.loss_scores_[int(np.argmax(means))]

    @property
    def path_(self) -> dict[str, Float]:
        """Columns "l2", "auc" (mean over folds), "error" (standard error) and "norm".

        The norm is the Euclidean one, of the weights times ``scale_``.
        """
        return path_table(self.l2s_, self.scores_, self.coef_path_ * self.scale_)
