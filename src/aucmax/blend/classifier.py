"""The best ranker for a table that we know of: several kinds of models, blended.

A linear ranker, kernels on landmarks, boosted and randomised trees see different things
in a table. Each is cross-fitted (:mod:`aucmax.blend.crossfit`); their scores of rows
that they have not seen say what each counts (:mod:`aucmax.blend.blending`), how well
the blend ranks, and how probable a score makes the positive class.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.model_selection import StratifiedKFold
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from aucmax.base.duplicate_rows import Repeats
from aucmax.base.folds import drawn
from aucmax.base.ranker import Ranker, generator
from aucmax.blend.blending import weights
from aucmax.blend.crossfit import (
    Fitted,
    Member,
    Part,
    Rows,
    Tell,
    crossfit,
    deal,
    parted,
    scores_of,
)
from aucmax.blend.frequent import Frequent
from aucmax.blend.importance import Importance, importances
from aucmax.blend.missing import Fill
from aucmax.blend.trees import BoostedTrees, RandomizedTrees
from aucmax.blend.uncertainty import (
    chance,
    crossfit_interval,
    merged,
    model_scores,
    mutual,
)
from aucmax.core.rows import Float
from aucmax.core.validation import DataWarning
from aucmax.kernel.kernel_cv import KernelAUCCV
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC
from aucmax.metrics.calibration import log_odds
from aucmax.metrics.decimals import decimals, with_interval
from aucmax.metrics.delong import AUCInterval
from aucmax.storage.estimator import below, restore
from aucmax.storage.storable import Spec, State, check_arrays
from aucmax.tables.column_kinds import ColumnKind, column_kinds
from aucmax.tables.positive_class import check_positive

_WIDE = 2000  # features; beyond, rows stay sparse and models linear
_BLOCK = 1 << 22  # values of sparse rows that are dense at a time
_ROUNDS = 10  # of folds, if there is time for them …
_OF_ALL_ROUNDS = 20_000  # … and rows: files are to be small
_LEARNING = 0.9  # of a budget, what is left is for what comes of it
_COPIES = 0.01  # of the rows, from which on copies are worth a warning
_FEWEST = 3  # rows of a class: members leave out some of those that a fold leaves
_INNER = 2  # folds of rows that one split has left out
_JUDGING = 500  # rows on which the models of folds are compared
_MANY = 200  # columns, beyond which it takes too long to say what each is worth
_SHOWN = 8  # of them that are worth most
_LEAST = 0.01  # of the blend: below, a member is not worth the time it takes to score


class Standing(NamedTuple):
    """How a member stands."""

    member: str
    auc: float  # of rows that its models have not seen
    low: float  # of a confidence interval
    high: float
    weight: float  # share of the blend
    seconds: float  # to fit its models
    rows: int  # that a model has learnt from, at most


class AUCClassifier(Ranker):
    """A blend of linear, kernel and tree models, with nothing to tune.

    Parameters
    ----------
    members : list of estimators or of (name, estimator), default=None
        What to blend: any classifiers of scikit-learn's kind. None is a linear ranker,
        kernels, boosted trees and randomised trees. Of sparse rows with more than 2000
        features, it is two linear rankers; of a table with so many, the trees and
        kernels as well, on the 300 features that the most rows have.
    cv : int, cross-validation generator or iterable, default=5
        Number of folds, or what else scikit-learn takes for ``cv``: with splits along
        time, members are judged by what comes later.
    time_budget : float, default=None
        Seconds that ``fit`` may take, within a fifth. Slow members then learn from some
        of the rows, see ``leaderboard_``, or not at all; what time is left is used for
        more folds.
    categorical : sequence of str or int, default=None
        Columns of a data frame, by name or position, that are categorical. Others are
        what their types and values say, see ``columns_``: pandas' ``category`` and its
        relatives of polars and Arrow are categorical, and so are strings of digits.
    text : sequence of str or int, default=None
        Columns of a data frame that are text.
    drop : sequence of str or int, default=None
        Columns of a data frame that are not used.
    random_state : int, RandomState instance or None, default=None
        Deals folds, and draws what members draw.
    verbose : bool, default=False
        Whether to print a line for each model that has been fitted.

    Attributes
    ----------
    auc_ : AUCInterval
        The AUC on rows that models had not seen, mean of the folds, with a confidence
        interval (95 %) for the AUC of the fitted model on new rows.
    leaderboard_ : list of Standing
        The members, the best first: AUC with interval, weight, seconds, rows.
    columns_ : list of ColumnKind
        The columns of the table: name, kind (numeric, boolean, categorical, text,
        datetime, identifier, constant, empty) and what it became.
    importances_ : list of Importance
        What columns are worth, the best first: by how much AUC falls when the values of
        one are shuffled, in rows that models had not seen, with an interval. None of
        more than 200 columns, or when time is up; see
        ``sklearn.inspection.permutation_importance``.
    feature_importances_ : ndarray
        The same as numbers, in the order of the columns.
    members_ : dict
        The models of each member that counts.
    n_iter_ : int
        Models of a member, at most.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Features seen in ``fit``; of a table that had to be encoded, those after it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X was a data frame.

    See Also
    --------
    AUCStream : For streams, and for data that do not fit in memory.
    BAMCV : A single linear ranker.

    Notes
    -----
    The mean of the models of the folds is somewhat better than each of them, and so the
    blend better than ``auc_.value`` says. The upper end of the interval allows for it.
    The interval also allows for folds that depend on each other, by how much their
    models differ. On simulated noise and signal of 100 to 400 rows it covered the AUC
    of the fitted model in 92 % to 100 % of the draws; ``benchmarks/bench_coverage.py
    classifier`` prints the table. It holds for one fit; to compare many settings by
    ``auc_`` and take the best is not allowed for.

    Rows that equal another one and have its label are taken for copies, and kept in one
    fold: else models would be evaluated on rows that they have seen. Where equal rows
    have different labels (more than a tenth as often as by chance), as in tables of a
    few categories, they are taken for observations of their own. Rows that were copied
    in such a table should be told by ``groups``. ``explain`` has the numbers.

    Numbers that are missing (NaN) in a dense array are taken for the median of their
    column, with a column more that says so. Data frames with other columns than numbers
    are encoded as ``aucmax train`` does with tables, which needs ``aucmax[data]``.

    References
    ----------
    D. Wolpert, "Stacked generalization", Neural Networks 5, 1992.

    M. van der Laan, E. Polley, A. Hubbard, "Super learner", Statistical Applications in
    Genetics and Molecular Biology 6, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from aucmax import AUCClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = AUCClassifier(random_state=0).fit(X, y)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.99
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": ["array-like", None],
        "cv": ["cv_object"],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "categorical": ["array-like", None],
        "text": ["array-like", None],
        "drop": ["array-like", None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    auc_: AUCInterval
    leaderboard_: list[Standing]
    members_: dict[str, list[Any]]
    _repeats: tuple[int, int]  # rows that equal an earlier one; that folds part
    _worth: list[Importance]  # of columns, in their order
    _fill: Fill  # of numbers that are missing
    _column_of_feature: list[str] | None = None  # of a table that has been encoded
    _progress: Tell | None = None  # who wants to know of fitted models
    _blend: Float  # (3, members) mean and deviation of scores, and their weights
    _odds: Float  # (2,) what makes log-odds of the blend: a factor, and what to add

    def __init__(
        self,
        members: Any = None,
        *,
        cv: Any = 5,
        time_budget: float | None = None,
        categorical: Sequence[str | int] | None = None,
        text: Sequence[str | int] | None = None,
        drop: Sequence[str | int] | None = None,
        random_state: Any = None,
        verbose: Any = False,
    ) -> None:
        self.members = members
        self.cv = cv
        self.time_budget = time_budget
        self.categorical = categorical
        self.text = text
        self.drop = drop
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit to ``X`` and binary ``y``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The rows: numbers, or a data frame of pandas, polars or Arrow.
        y : array-like of shape (n_samples,)
            Two classes; the larger label, ``classes_[1]``, is to come out on top.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in learning and in AUC. A row of weight zero is not
            there at all.
        groups : array-like of shape (n_samples,), default=None
            Rows of one group are never in two folds: who knows one knows the others.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit_or_restore(X, y, sample_weight, groups)

    def fit_encoded(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        column_of_feature: list[str] | None = None,
        progress: Tell | None = None,
    ) -> Self:
        """Fit to rows that an encoder made of a table, as ``aucmax train`` does.

        ``column_of_feature`` names the column that each feature was made of, so that
        importance is that of columns. ``progress`` is called with the name of a fitted
        model, the number of models fitted, and the number of all.
        """
        return self._fit_or_restore(
            X, y, sample_weight, None, column_of_feature, progress
        )

    def _fit_or_restore(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        column_of_feature: list[str] | None = None,
        progress: Tell | None = None,
    ) -> Self:
        before = dict(vars(self))
        try:
            self._column_of_feature, self._progress = column_of_feature, progress
            return self._fit(X, y, sample_weight, groups)
        except BaseException:  # the model fitted before, if any, stays
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        finally:
            self.__dict__.pop("_progress", None)  # a callback is not part of a model

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        begun = monotonic()
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max // 2)
        rows, signed, groups = self._rows_of(X, y, sample_weight, groups)
        fewest = min(np.count_nonzero(side) for side in _sides(rows.signed))
        if self.members is None and fewest < _FEWEST:
            raise ValueError(
                f"A class has {fewest} rows of {len(rows.signed)}; to blend models, "
                f"{_FEWEST} are needed of each. A single one can do with less: use BAM."
            )
        equal = Repeats.among(rows.X, rows.signed > 0.0)
        rounds = [deal(self.cv, signed, groups, seed, equal)]
        self._look_at_copies(equal, rounds[0])
        budget = self.time_budget
        if budget is not None:
            budget = _LEARNING * budget - (monotonic() - begun)
            if isinstance(self.cv, Integral):
                most = min(max(_OF_ALL_ROUNDS // len(rows.signed), 1), _ROUNDS)
                rounds += [
                    deal(self.cv, signed, groups, seed + k, equal)
                    for k in range(1, most)
                ]
        fitted = crossfit(self._team(rows.X), rows, rounds, seed, budget, self._tell)
        self._settle(fitted, rows, rounds[0], equal, seed)
        late = monotonic() - begun > (self.time_budget or np.inf)
        self._worth = [] if late else self._importances(rows, rounds[0], seed)
        return self

    def predict_proba(self, X: ArrayLike) -> Float:
        """Return the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Of ``classes_[0]`` and of ``classes_[1]``, calibrated on scores of rows that
            members had not seen, by Platt's method.
        """
        score = self.decision_function(X)
        return np.column_stack([expit(-score), expit(score)])

    @property
    def columns_(self) -> list[ColumnKind]:
        """The columns of the table, their kinds, and what they became."""
        if self.recipe_:
            return column_kinds(self.recipe_["input"].get("roles", []))
        return [ColumnKind(name, "numeric", "1 feature") for name in self._columns()]

    @property
    def importances_(self) -> list[Importance]:
        """What columns are worth, the best first."""
        return sorted(self._worth, key=lambda one: -one.drop)

    @property
    def feature_importances_(self) -> Float:
        """What columns are worth, in their order."""
        if not self._worth:
            raise AttributeError(
                f"More than {_MANY} columns, or models of no fold: "
                "sklearn.inspection.permutation_importance says what each is worth."
            )
        return np.array([one.drop for one in self._worth])

    def explain(self) -> str:
        """Return what there is to know of the model, in words."""
        check_is_fitted(self)
        value, low, high, _ = self.auc_
        best = self.leaderboard_[0]
        parts = sorted(self.leaderboard_, key=lambda line: -line.weight)
        blended = ", ".join(
            f"{p.member} {p.weight:.0%} ({p.rows:,} rows a model)"
            for p in parts
            if p.weight
        )
        pairs = f"{value:.{decimals(low, high) - 2}%}"
        area, least, most = with_interval(value, low, high)
        alone = "{} ({} to {})".format(*with_interval(*best[1:4]))
        lines = [
            f"It ranks rows of the class {self.classes_[1].item()!r} high, those of "
            f"{self.classes_[0].item()!r} low.",
            f"It ranks {pairs} of the pairs of a positive and a negative row right "
            f"(AUC {area}, 95 % interval {least} to {most}), judged by rows that it "
            "had not seen.",
            f"It blends {blended}. The best of them alone is {best.member}, with an "
            f"AUC of {alone}.",
        ]
        clear = [one for one in self.importances_ if one.low > 0.0]
        if clear:
            named = ", ".join(f"{one.column} {one.drop:.4f}" for one in clear[:_SHOWN])
            lines.append(f"AUC falls most when these columns are shuffled: {named}.")
        elif self._worth:
            lines.append("No column alone is missed when its values are shuffled.")
        repeated, split = self._repeats
        if repeated:
            how = f"folds part {split} of them" if split else "folds keep them together"
            lines.append(f"{repeated} rows equal an earlier one; {how}.")
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``; see :func:`aucmax.load`.

        Members that are not of this library cannot be saved: a file that could hold any
        of them could run anything when it is loaded.
        """
        check_is_fitted(self)
        for _, estimator in self._team(None):
            kind = type(estimator)
            if not kind.__module__.startswith("aucmax."):
                raise TypeError(
                    f"The member {kind.__name__} cannot be saved: it is not of aucmax, "
                    "and a file that could hold it could run code. Blend estimators of "
                    "aucmax, or use skops.io and the care that it asks for."
                )
        super().save(path)

    def _look_at_copies(self, equal: Repeats, parts: list[Part]) -> None:
        """Count equal rows; warn if they are many, and look like copies."""
        split = parted(parts, equal) if equal.repeated else 0
        self._repeats = (equal.repeated, split)
        n = len(equal.of)
        if not equal.copies or equal.repeated < _COPIES * n:
            return
        if split:
            warnings.warn(
                f"{split} of {n} rows are scored by models that learnt from an equal "
                "row. If they are copies (oversampling, joins), auc_ is too high: "
                "remove copies, or keep them in one fold by cv or groups.",
                DataWarning,
                stacklevel=5,
            )
        else:
            warnings.warn(
                f"{equal.repeated} of {n} rows equal another row and have its label. "
                "They are taken for copies: folds keep them together, and the interval "
                "of auc_ counts distinct rows. If they are observations of their own, "
                "give the folds as cv=StratifiedKFold(5, shuffle=True).",
                DataWarning,
                stacklevel=5,
            )

    def _rows_of(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Rows, Float, Any]:
        """Return the rows that count as members take them; weights, groups of all."""
        overrides = {
            name: list(columns)
            for name in ("categorical", "text", "drop")
            if (columns := getattr(self, name)) is not None
        }
        if overrides and not (is_mixed(X) or hasattr(X, "columns")):
            raise ValueError(
                f"{min(overrides)} names columns of a data frame, and X is "
                f"{type(X).__name__}: make it one, such as by pandas.DataFrame(X)."
            )
        if is_mixed(X) or overrides:
            X, self.encoder_, self._column_of_feature = _encoder(X, overrides)
        else:
            self.encoder_ = None
        X, signed = self._labelled(X, y, sample_weight, reset=True)
        self._fill = Fill.of(np.zeros((0, X.shape[1])) if sparse.issparse(X) else X)
        X = self._accepted(X)
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        self.recipe_ = None
        if self.encoder_ is not None:
            task = _task(self.classes_)
            self.recipe_ = {"input": self.encoder_.recipe, "task": task}
        signed = signed / np.mean(np.abs(signed[signed != 0.0]))
        if groups is not None:
            groups = np.asarray(groups)
            if groups.shape != signed.shape:
                raise ValueError(
                    f"groups.shape == {groups.shape}, expected {signed.shape}: one for "
                    "each row."
                )
        if not signed.all():
            X = X[signed != 0.0]
        if sparse.issparse(X) and X.shape[1] <= _WIDE:
            X = X.toarray()
        rows = Rows(X, signed[signed != 0.0], sample_weight is not None)
        return rows, signed, groups

    def _accepted(self, X: Any) -> Any:
        if not sparse.issparse(X):
            X = self._fill.fill(X)
        return super()._accepted(X)

    def _team(self, X: Any) -> list[Member]:
        """Return the members to be."""
        if self.members is None:
            return default_team(sparse.issparse(X), self._column_of_feature is not None)
        team: list[Member] = []
        for member in self.members:
            name, estimator = (
                member if isinstance(member, tuple | list) else ("", member)
            )
            if not hasattr(estimator, "fit") or not (
                hasattr(estimator, "decision_function")
                or hasattr(estimator, "predict_proba")
            ):
                raise ValueError(
                    f"members has {estimator!r}, which is no estimator with a "
                    "decision_function or predict_proba."
                )
            name = str(name) or type(estimator).__name__
            taken = {one.name for one in team}
            numbered = (f"{name} {k}" for k in range(2, len(taken) + 3))
            team.append(
                Member(
                    name
                    if name not in taken
                    else next(n for n in numbered if n not in taken),
                    estimator,
                )
            )
        if not team:
            raise ValueError("members is empty: there is nothing to blend.")
        return team

    def _tell(self, name: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(name, done, total)
        if self.verbose:
            print(f"[AUCClassifier] {done} of {total} models: {name}", flush=True)

    def _settle(
        self,
        fitted: list[Fitted],
        rows: Rows,
        parts: list[Part],
        equal: Repeats,
        seed: int,
    ) -> None:
        """Find what members count, and what comes of them."""
        fold = fold_of(parts, len(rows.signed))
        seen = fold >= 0
        signed, fold = rows.signed[seen], fold[seen]
        positive = signed > 0.0
        S = np.column_stack([one.scores[seen] for one in fitted])
        mean, unit = S.mean(axis=0), S.std(axis=0)
        unit[unit == 0.0] = 1.0
        Z = (S - mean) / unit
        w = weights(Z, signed)
        w[w < _LEAST * w.sum()] = 0.0
        blend = _unseen(Z, signed, fold)
        interval = self._interval(fitted, rows, parts, equal, seed)
        self.auc_ = interval(blend, w / unit)
        mass = np.array([signed[positive].sum(), -signed[~positive].sum()])
        mass *= len(signed) / mass.sum()
        self._odds = np.array(log_odds(blend[positive], blend[~positive], mass))
        lines = [
            Standing(
                one.name,
                *interval(S[:, j], np.arange(len(fitted)) == j)[:3],
                weight=float(w[j] / w.sum()),
                seconds=one.seconds,
                rows=one.rows,
            )
            for j, one in enumerate(fitted)
        ]
        self.leaderboard_ = sorted(lines, key=lambda line: -line.auc)
        self.members_ = {one.name: one.models for j, one in enumerate(fitted) if w[j]}
        self._blend = np.array([mean, unit, w])[:, w > 0.0]
        self.n_iter_ = max(map(len, self.members_.values()))

    def _interval(
        self,
        fitted: list[Fitted],
        rows: Rows,
        parts: list[Part],
        equal: Repeats,
        seed: int,
    ) -> Callable[[Float, NDArray[Any]], AUCInterval]:
        """Return what makes an interval of unseen scores, and of weights of members."""
        fold = fold_of(parts, len(rows.signed))
        seen = fold >= 0
        positive, fold, weight = rows.signed[seen] > 0.0, fold[seen], None
        if rows.weighted:
            weight = np.abs(rows.signed[seen])
        once = np.arange(len(positive))
        if equal.copies:
            once, weight = merged(equal.of[seen], positive, fold, weight)
        if not parts[0].kept:  # the models of the splits are not there any more
            share = float(mutual(parts))
            return lambda unseen, _: crossfit_interval(
                positive[once], unseen[once], fold[once], weight, share, 0.0
            )
        some = np.arange(len(rows.signed))
        if len(some) > _JUDGING:
            some = drawn(rows.signed, _JUDGING, np.random.RandomState(seed))
        scores = model_scores(fitted, len(parts), rows.X[some])
        models = min(len(one.models) for one in fitted)

        def found(unseen: Float, w: NDArray[Any]) -> AUCInterval:
            share = chance(np.tensordot(w, scores, 1), unseen, positive)
            return crossfit_interval(
                positive[once],
                unseen[once],
                fold[once],
                weight,
                share,
                share / models,
            )

        return found

    def _importances(
        self, rows: Rows, parts: list[Part], seed: int
    ) -> list[Importance]:
        """Return what columns are worth; nothing if they are many, or none can tell."""
        columns = self._columns()
        judges = [k for k, part in enumerate(parts) if part.kept and len(part.test)]
        if len(columns) > _MANY or not judges:
            return []
        folds = [(partial(self._score, fold=k), parts[k].test) for k in judges]
        rng = np.random.RandomState(seed)
        return importances(folds, rows.X, rows.signed > 0.0, columns, rng)

    def _columns(self) -> dict[str, NDArray[np.int64]]:
        """Return which features belong to each column, by its name."""
        names = self._column_of_feature
        if names is None:
            known = getattr(self, "feature_names_in_", range(self.n_features_in_))
            names = [str(name) for name in known]
            names += [names[j] for j in self._fill.flagged]
        found: dict[str, list[int]] = {}
        for feature, name in enumerate(names):
            found.setdefault(name, []).append(feature)
        return {name: np.array(features) for name, features in found.items()}

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        if sparse.issparse(X) and X.shape[1] <= _WIDE:
            size = max(_BLOCK // X.shape[1], 1)
            parts = [X[i : i + size].toarray() for i in range(0, X.shape[0], size)]
            return np.concatenate([np.zeros(0), *map(self._score, parts)])
        return self._score(X)

    def _score(self, X: Any, fold: int | None = None) -> Float:
        """Return the scores of rows as members take them; by the models of a fold."""
        slope, total = self._odds[0], np.full(X.shape[0], self._odds[1])
        for models, (mean, unit, w) in zip(
            self.members_.values(), self._blend.T, strict=True
        ):
            some = models if fold is None else models[fold : fold + 1]
            score = np.mean([scores_of(model, X) for model in some], axis=0)
            total += slope * w / unit * (score - mean)
        return total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def state(self) -> State:
        """Return the state: of the models, how they are blended, what is known."""
        state = super().state()
        state.header["notes"] = {
            "auc": list(self.auc_),
            "leaderboard": [list(line) for line in self.leaderboard_],
            "importances": [list(line) for line in self._worth],
            "repeats": list(self._repeats),
            "models": [[name, len(some)] for name, some in self.members_.items()],
        }
        own = {"blend": self._blend, "odds": self._odds, **self._fill._asdict()}
        state.arrays.update({f"own.{name}": array for name, array in own.items()})
        for name, models in self.members_.items():
            for k, model in enumerate(models):
                state.children[f"{name}.{k}"] = model.state()
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the estimator of a state; raise a ValueError if it is invalid."""
        estimator = super().from_state(state)
        notes, own = state.header["notes"], below("own", state.arrays)
        estimator.auc_ = AUCInterval(*map(_number, notes["auc"]))
        estimator.leaderboard_ = [
            Standing._make([_text(name), *map(_number, numbers)])
            for name, *numbers in notes["leaderboard"]
        ]
        estimator._worth = [
            Importance._make([_text(name), *map(_number, numbers)])
            for name, *numbers in notes["importances"]
        ]
        repeated, split = map(_number, notes.get("repeats", (0, 0)))
        estimator._repeats = int(repeated), int(split)
        estimator._fill = Fill.restored(own, estimator.n_features_in_)
        parts = {name: restore(child) for name, child in state.children.items()}
        width = estimator.n_features_in_ + len(estimator._fill.flagged)
        for name, model in parts.items():
            if not isinstance(model, Ranker) or model.n_features_in_ != width:
                raise ValueError(f"{name} is not a model of these features.")
        counts = {_text(name): int(_number(count)) for name, count in notes["models"]}
        if not counts or sum(counts.values()) != len(parts) or 0 in counts.values():
            raise ValueError(f"it has {len(parts)} models of {', '.join(counts)}.")
        estimator.members_ = {
            name: [parts[f"{name}.{k}"] for k in range(count)]
            for name, count in counts.items()
        }
        found = check_arrays(own, {"blend": Spec("am"), "odds": Spec("b")}, width)
        estimator._blend, estimator._odds = blend, odds = found["blend"], found["odds"]
        if blend.shape != (3, len(counts)) or odds.shape != (2,):
            raise ValueError(f"its weights have shapes {blend.shape}, {odds.shape}.")
        if not (blend[1:] > 0.0).all() or not odds[0] > 0.0:
            raise ValueError("blend weights or calibration slope are not positive.")
        return estimator


def _unseen(Z: Float, signed: Float, fold: NDArray[Any]) -> Float:
    """Return the blend of each row, by weights that are not from its fold."""
    if (fold == fold[0]).all():  # one split only
        parts = StratifiedKFold(_INNER).split(Z, signed > 0.0)
        for k, (_, test) in enumerate(parts):
            fold = fold.copy()
            fold[test] = k
    blend = np.empty(len(signed))
    for one in np.unique(fold):
        here = fold == one
        blend[here] = Z[here] @ weights(Z[~here], signed[~here])
    return blend


def _sides(signed: Float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return signed < 0.0, signed > 0.0


def default_team(wide: bool, table: bool = False) -> list[Member]:
    """Return the default members, for dense rows, wide sparse ones, or wide tables.

    Chosen with the data sets of docs/tables.md in view.
    """
    linear = Member("linear", BAMCV())
    squares = Member("linear, square loss", LeastSquaresAUC())
    drawn = BoostedTrees(300, min_leaf=10, max_features=0.4)
    others = [
        Member("randomised trees", RandomizedTrees()),
        Member("boosted trees", BoostedTrees()),
        Member("boosted trees, features drawn", drawn),
        Member("kernel", KernelAUCCV(cv=3, fallback=False)),
    ]
    if not wide:
        return [linear, *others]
    narrow = [Member(name, Frequent(estimator)) for name, estimator in others]
    return [squares, linear, *(narrow if table else [])]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a member is called {value!r}.")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"it says {value!r} where a number should be.")
    return value


def fold_of(parts: list[Part], n: int) -> NDArray[np.int64]:
    """Return which part has scored each row; -1 if none has."""
    fold = np.full(n, -1)
    for k, part in enumerate(parts):
        fold[part.test] = k
    return fold


def is_mixed(X: Any) -> bool:
    """Tell whether X is a table whose columns are not all numbers."""
    if hasattr(X, "collect_schema") and not hasattr(X, "to_arrow"):
        raise TypeError("X is a lazy frame of polars: pass X.collect().")
    if hasattr(X, "column_names") or hasattr(X, "to_arrow"):  # Arrow, polars
        return True
    if sparse.issparse(X) or not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return False
    return any(getattr(kind, "kind", "O") not in "biuf" for kind in X.dtypes)


def _encoder(frame: Any, overrides: dict[str, list[Any]]) -> tuple[Any, Any, list[str]]:
    """Return the feature rows of a table, its encoder, the column of each feature."""
    try:
        from aucmax.io.frame import FrameEncoder, FrameSource
    except ImportError:
        raise ImportError(
            "Tables with other columns than numbers need a package: "
            "pip install 'aucmax[data]'"
        ) from None
    source = FrameSource(frame, labelled=False, **overrides)
    encoder = FrameEncoder(source.recipe())
    return encoder.transform(frame), encoder, source.schema.feature_columns()


def _task(classes: NDArray[Any]) -> dict[str, Any]:
    """Return which label is positive, as a model file says it."""
    from aucmax.tables.labels import Task

    negative, positive = classes.tolist()
    boolean = isinstance(positive, bool)
    return (Task() if boolean else Task.of([positive], [negative])).to_json()
