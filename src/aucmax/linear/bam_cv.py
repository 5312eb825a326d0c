"""BAM along a path of penalties, the best one and the best loss by cross-validation.

Penalties fall along the path, and each minimum starts from the one before; folds are
weights of zero, so that no row is copied, and the scores of the rows that were left out
come with those of the others. What the solver knows of the features (their covariances)
is the same for all folds, penalties and losses.

The penalty is on the weights of features of unit scale. A ridge on raw weights would
depend on units, and there is no number of it that would suit a feature in thousands and
one in thousandths. What unit scale is, data must say: features that are rare have small
deviations, so that their weights are next to free, which is right where they tell much
and there are few of them (german) and wrong where there are many (a9a). Few rows cannot
tell, so the deviations stay unless the other scale is clearly better.
"""

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from aucmax.base.folds import area, folds, left_out, path_table, penalties
from aucmax.base.penalty import squared_sizes
from aucmax.base.ranker import GRADIENT, LinearRanker
from aucmax.core.rows import Float, Index
from aucmax.core.threads import one_blas_thread
from aucmax.linear.bam import LOSSES, Landscape, cut_short, solver, survey
from aucmax.linear.bam_scaled import Scaled, better, deviation
from aucmax.linear.solvers.newton import Solver, together
from aucmax.losses.pairwise import shares
from aucmax.storage.storable import Spec

AUTO = ("squared_hinge", "logistic")

# Of a fold's minimum: its AUC is then right to 1e-4 or so, and known no better.
_ROUGH = 5e-3
_ALIKE = 2.0  # within such a factor, two scales are one


class Fold(NamedTuple):
    """The rows to train on, those left out, and which of these are what."""

    train: Index
    test: Index
    signed: Float  # of all rows
    weighted: bool

    def shares(self) -> Float:
        """Return shares that are zero for the rows left out."""
        here = np.zeros_like(self.signed)
        here[self.train] = self.signed[self.train]
        return shares(here)

    def area(self, scores: Float) -> Solver[float]:
        """Return the AUC on the rows left out."""
        return area(scores[self.test], self.signed[self.test], self.weighted)
        yield  # on a cluster, it has to be asked for


class Path(NamedTuple):
    """What a solver finds along the penalties."""

    weights: list[Float]
    areas: list[float]  # on the rows left out
    n_iter: int  # the most that a penalty took
    left: float  # the largest gradient at which steps ran out


Run = Callable[[list[Solver[Path]]], list[Path]]


class BAMCV(LinearRanker):
    r"""The linear ranker of a pairwise loss, with the best penalty and the best loss.

    Finds, for every :math:`l_2` of a path and every loss, the minimum of

    .. math:: E\,\ell(w \cdot (x^+ - x^-)) + \tfrac{l_2}{2} \sum_j s_j^2 w_j^2

    on all rows but those of a fold, and takes what has the highest mean AUC on the
    folds left out. :math:`s_j` is the standard deviation of a feature, or its size
    where it is not zero, so that the units of features do not matter.

    Parameters
    ----------
    l2s : int or array-like of shape (n_l2s,), default=12
        The penalties, or how many to spread over the range from one that leaves next to
        nothing of the weights to next to none.
    cv : int, cross-validation generator or iterable, default=5
        Number of folds (stratified; no more than the smaller class has rows), or
        whatever else scikit-learn takes for ``cv``.
    loss : str or list of str, default="auto"
        A loss of :class:`BAM`, or several to choose among; "auto" stands for
        ["squared_hinge", "logistic"].
    scale : {"auto", "deviation", "size", "none"}, default="auto"
        The s of the penalty: the standard deviations; the sizes of features that are
        not zero, :math:`s_j^2 = E[z_j^2 \mid z_j \ne 0]` for the difference z of a
        pair, which hold back what is rare; or, as in :class:`BAM`, one. "auto" takes
        the sizes if the first loss has a higher AUC with them, by more than a standard
        error over the folds; it looks at them only where they differ much from the
        deviations.
    tol : float, default=1e-3
        As in :class:`BAM`; minima from folds are found to 5e-3 at best.
    max_iter : int, default=100
        Newton steps for each penalty, at most; one ``ConvergenceWarning`` says if they
        were too few for some.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The weights for ``l2_`` and ``loss_``, from all rows.
    intercept_ : ndarray of shape (1,)
        Puts the score zero midway between the mean scores of the classes.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.
    n_iter_ : int
        The most Newton steps that a penalty took, of those from all rows.
    l2_ : float
        The penalty with the highest mean AUC; of equal ones the largest.
    loss_ : str
        The loss with the highest mean AUC; of equal ones the first.
    scale_ : ndarray of shape (n_features,)
        The s of the penalty: ``BAM(l2_, loss=loss_).fit(X / scale_, y)`` has the
        weights ``coef_ * scale_``. Zero where a feature is constant.
    l2s_ : ndarray of shape (n_l2s,)
        All penalties, falling.
    scores_ : ndarray of shape (n_l2s, n_folds)
        AUC on each fold of the weights from the other folds, with ``loss_``.
    loss_scores_ : ndarray of shape (n_losses, n_l2s, n_folds)
        The same for every loss, with ``scale_``.
    coef_path_ : ndarray of shape (n_l2s, n_features)
        The weights for each penalty, from all rows.

    See Also
    --------
    BAM : The same for one penalty and one loss.
    LeastSquaresAUCCV : The pairwise square loss, whose whole path costs one pass.

    Notes
    -----
    With the sigmoid loss as a third one, ``loss=["squared_hinge", "logistic",
    "sigmoid"]``, a fit takes about twice as long or more. It is nearest to the AUC and
    can be worth it where no linear ranker is near the truth: test AUC 0.831 instead of
    0.828 on a split of covtype_sample, 0.681 instead of 0.675 on halves of
    higgs_sample.

    Memory, beside X, is some hundred numbers a row, as six minima are sought at a time,
    and up to 1024 features, if X is not too sparse, d² numbers for each penalty.

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
        "l2s": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "cv": ["cv_object"],
        "loss": [StrOptions({"auto", *LOSSES}), list, tuple],
        "scale": [StrOptions({"auto", "deviation", "size", "none"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    stored: ClassVar[dict[str, Spec]] = dict.fromkeys(
        (
            "l2_",
            "scale_",
            "l2s_",
            "loss_scores_",
            "coef_path_",
        ),
        Spec(finite=False),
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to ``X`` and binary ``y``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows; float32 and CSR are used as they are.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the AUC of a fold.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._losses()  # what is wrong with them is better known at once
        X, rows, signed = self._check(X, y, sample_weight, reset=True)
        land = survey(self, X, rows, signed)
        parts = [
            Fold(train, left_out(signed, test), signed, sample_weight is not None)
            for train, test in folds(self.cv, X, signed, "BAM")
        ]
        return self._search(
            land,
            parts,
            shares(signed),
            lambda solvers: together(rows, self.n_features_in_, solvers),
        )

    def _search(
        self, land: Landscape, parts: Sequence[Any], everything: Any, run: Run
    ) -> Self:
        """Find the path; ``run`` gives solvers the products that they ask for.

        ``parts`` are folds, as :class:`Fold` is one, and ``everything`` the shares of
        all rows.
        """
        losses, lands = self._losses(), self._lands(land)
        with one_blas_thread():
            # The first loss chooses the scale for all.
            some = losses[:1] if len(lands) > 1 else losses
            areas, left = self._areas(lands, some, parts, run)
            best = int(len(lands) > 1 and better(areas[1], areas[0]))
            scaled = lands[best]
            (rest,), more = self._areas([scaled], losses[len(some) :], parts, run)
            self.loss_scores_ = np.concatenate([areas[best], rest])
            l2s = penalties(self.l2s, scaled.spread)
            (path,) = run([self._path(scaled, self.loss_, l2s, None, everything)])
        # One warning for all of the fits, with the worst of them.
        self._warn_above(self.tol, max(left, more, path.left), GRADIENT)
        best = int(np.argmax(self.scores_.mean(axis=1)))
        self.l2s_, self.l2_ = l2s, float(l2s[best])
        self.scale_ = scaled.scale
        self.n_iter_ = path.n_iter
        self.coef_path_ = np.array(path.weights)
        w = path.weights[best]
        self.coef_ = w[np.newaxis].copy()
        self.intercept_ = np.array([-0.5 * float((land.mean @ w).sum())])
        return self

    def _lands(self, land: Landscape) -> list[Scaled]:
        """Return what there is to choose from, the first one if in doubt."""
        d = self.n_features_in_
        if self.scale == "none":
            return [Scaled(land, np.ones(d))]
        found = []
        if self.scale != "size":
            found.append(Scaled(land, deviation(land)))
        if self.scale != "deviation":
            size = np.sqrt(squared_sizes(land.weight, land.often, land.diagonal()))
            found.append(Scaled(land, size))
        if len(found) > 1:
            ratio = found[1].scale[land.varies] / found[0].scale[land.varies]
            if ratio.max(initial=0.0) < _ALIKE * ratio.min(initial=np.inf):
                found.pop()
        return found

    def _areas(
        self, lands: list[Scaled], losses: list[str], parts: Sequence[Any], run: Run
    ) -> tuple[Float, float]:
        """Return the AUC of each scale, loss, penalty and fold, and ``left`` of all."""
        l2s = [penalties(self.l2s, land.spread) for land in lands]
        paths = [
            self._path(land, loss, some, fold)
            for land, some in zip(lands, l2s, strict=True)
            for loss in losses
            for fold in parts
        ]
        found = run(paths)
        areas = np.array([path.areas for path in found])
        shape = len(lands), len(losses), len(parts), len(l2s[0])
        left = max((path.left for path in found), default=0.0)
        return areas.reshape(shape).swapaxes(2, 3), left

    def _path(
        self, land: Scaled, loss: str, l2s: Float, fold: Any, everything: Any = None
    ) -> Solver[Path]:
        """Return the minima for all penalties, each from the one before."""
        tol = max(self.tol, _ROUGH) if fold else self.tol
        share = fold.shares() if fold else everything
        objective, start = land.objective(share, loss), None
        path = Path([], [], 0, 0.0)
        for l2 in l2s.tolist():
            ridge = l2 * land.square
            with_ridge, at = objective.with_ridge(ridge), land.coordinates(ridge)
            one = yield from solver(with_ridge, at, tol, self.max_iter, start)
            start = one.place
            path.weights.append(one.w)
            if fold:
                path.areas.append((yield from fold.area(start.scores)))
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
                raise ValueError(f"loss={self.loss!r}: {loss!r} is none of {known}.")
        if not self.loss:
            raise ValueError("loss is empty: there must be at least one.")
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
        """The path, ready to plot or to put in a data frame.

        Columns "l2", "auc" (mean over the folds), "error" (its standard error) and
        "norm" (Euclidean, of the weights times ``scale_``).
        """
        return path_table(self.l2s_, self.scores_, self.coef_path_ * self.scale_)
