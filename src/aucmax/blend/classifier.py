"""AUCClassifier: a cross-fitted blend of linear, kernel and tree models.

Each member is cross-fitted (:mod:`aucmax.blend.crossfit`). The out-of-fold scores
determine the weights of the members (:mod:`aucmax.blend.blending`), the calibration of
probabilities and the AUC of the blend (:mod:`aucmax.blend.combine`).
"""

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from aucmax.base.duplicate_rows import Repeats
from aucmax.base.ranker import Ranker, generator
from aucmax.blend.combine import BlendLeaderboardEntry, combine
from aucmax.blend.crossfit import (
    Fold,
    Member,
    Progress,
    TrainingRows,
    crossfit,
    score_with,
    split_rows,
)
from aucmax.blend.default_members import check_savable, default_team, named_members
from aucmax.blend.duplicates import DuplicateCounts, count_duplicates
from aucmax.blend.explanation import describe
from aucmax.blend.importance import Importance, features_by_name, importances
from aucmax.blend.missing import MedianImputer
from aucmax.blend.stored_notes import Notes, restore_members
from aucmax.blend.table_input import encode_table, label_task
from aucmax.core.rows import Float
from aucmax.metrics.delong import AUCInterval
from aucmax.storage.estimator import below
from aucmax.storage.storable import Spec, State, check_arrays
from aucmax.tables.column_kinds import ColumnKind, column_kinds
from aucmax.tables.positive_class import check_positive

_WIDE = 2000  # features; wider sparse rows stay sparse
_BLOCK = 1 << 22  # values of sparse rows that are made dense at a time
_MAX_ROUNDS = 10  # repetitions of the folds, if the time budget allows it …
_ROWS_TIMES_ROUNDS = 20_000  # … and there are few rows, to keep model files small
_TRAINING_SHARE = 0.9  # of the time budget, for fitting members
_MIN_CLASS_ROWS = 3  # the default members split the training rows of a fold once more
_MAX_COLUMNS = 200  # with importances; more would take too long


class AUCClassifier(Ranker):
    """Classifier for tables that maximises AUC, with no parameters to tune.

    It blends a linear ranker, a kernel ranker, boosted trees and randomised trees, and
    reports its AUC with a confidence interval and the importance of each column.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from aucmax import AUCClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = AUCClassifier(random_state=0).fit(X, y)
    >>> print(f"{model.score(X_test, y_test):.2f}")
    0.99

    ``print(model.explain())`` summarises the fitted model. X can also be a data frame
    with categorical, text and date columns.

    Parameters
    ----------
    members : list of estimators or of (name, estimator), default=None
        Classifiers to blend, of aucmax or scikit-learn. By default, a linear ranker, a
        kernel ranker, boosted trees (two settings) and randomised trees. For sparse
        rows with more than 2000 features, two linear rankers; if such rows come from a
        table, also trees and kernels on the 300 most frequent features.
    cv : int, cross-validation generator or iterable, default=5
        Number of folds, or any ``cv`` that scikit-learn accepts. Use
        ``TimeSeriesSplit`` to evaluate members on later rows than those they are
        trained on.
    time_budget : float, default=None
        Time limit for ``fit`` in seconds, kept within about 20 %. Slow members are
        trained on a sample of the rows (see ``leaderboard_``) or left out. Remaining
        time is used to repeat the folds.
    categorical : sequence of str or int, default=None
        Columns of a data frame, by name or position, to treat as categorical. By
        default, the kind of a column is detected from its type and values, see
        ``columns_``. Categorical types of pandas, polars and Arrow and strings of
        digits are categorical.
    text : sequence of str or int, default=None
        Columns of a data frame to treat as text.
    drop : sequence of str or int, default=None
        Columns of a data frame to ignore.
    random_state : int, RandomState instance or None, default=None
        Random seed of the folds and the members.
    verbose : bool, default=False
        Whether to print a line for each fitted model.

    Attributes
    ----------
    auc_ : AUCInterval
        AUC on held-out rows (mean over the folds), with a 95 % confidence interval for
        the AUC of the fitted model on new rows.
    leaderboard_ : list of BlendLeaderboardEntry
        The members, best first: AUC with confidence interval, weight, training time in
        seconds, and largest number of rows a model was trained on.
    columns_ : list of ColumnKind
        Columns of the table: name, kind (numeric, boolean, categorical, text, datetime,
        identifier, constant, empty) and encoding.
    importances_ : list of Importance
        Permutation importance of each column, highest first: the decrease of AUC on
        held-out rows when the column is shuffled, with a 95 % confidence interval.
        Empty for more than 200 columns, if ``time_budget`` is exhausted, or if ``cv``
        does not hold out every row once.
    feature_importances_ : ndarray of shape (n_columns,)
        The same decreases of AUC, in the order of the columns.
    members_ : dict
        Fitted models of each member with a positive weight.
    n_iter_ : int
        Largest number of models per member.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Number of features seen in ``fit``; for an encoded table, after encoding.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Feature names, if X was a data frame.

    See Also
    --------
    AUCStream : For streams and data larger than memory.
    BAMCV : A single linear ranker.

    Notes
    -----
    **AUC and confidence interval.** The mean of the fold models ranks slightly better
    than each of them, so the blend is slightly better than ``auc_.value``. The upper
    end of the interval accounts for this gain. The interval also accounts for the
    dependence between folds. In simulations with 100 to 400 rows, it covered the AUC of
    the fitted model in 92 % to 100 % of the runs; ``benchmarks/intervals.py
    classifier`` prints the table. The interval is valid for one fit, not for the best
    of many settings compared by ``auc_``.

    **Duplicate rows.** Equal rows with the same label are treated as copies and kept in
    one fold; otherwise models would be evaluated on rows they were trained on. If
    labels of equal rows differ more than a tenth as often as by chance, as in tables
    with few categorical columns, equal rows are treated as separate observations. If
    such a table contains copies, pass ``groups``. ``explain`` prints the counts.

    **Missing values.** NaN in a dense array is replaced by the median of the column,
    and an indicator feature is added. Data frames with non-numeric columns are encoded
    as by ``aucmax train``; malformed cells count as missing, with a warning.

    References
    ----------
    D. Wolpert, "Stacked generalization", Neural Networks 5, 1992.

    M. van der Laan, E. Polley, A. Hubbard, "Super learner", Statistical Applications in
    Genetics and Molecular Biology 6, 2007.
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
    leaderboard_: list[BlendLeaderboardEntry]
    members_: dict[str, list[Any]]
    _duplicates: DuplicateCounts
    _importances: list[Importance]  # in the order of the columns
    _fill: MedianImputer
    _column_of_feature: list[str] | None = None  # None if X was not encoded
    _blend: Float  # (3, members) mean and scale of the scores, and weights
    _odds: Float  # (2,) slope and offset of the calibration

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
        """Fit and blend the members.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Training rows: numbers, or a data frame of pandas, polars or Arrow.
        y : array-like of shape (n_samples,)
            Labels of two classes; the larger label, ``classes_[1]``, is positive.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights, used in training and in the AUC. Rows of weight zero are
            ignored.
        groups : array-like of shape (n_samples,), default=None
            Group labels; rows of one group are kept in the same fold.

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
        progress: Progress | None = None,
    ) -> Self:
        """Fit to an encoded table, as ``aucmax train`` does.

        ``column_of_feature`` names the column that each feature was made from;
        importances then refer to columns. ``progress`` is called after each fitted
        model with the name of the member, the number of fitted models and the total.
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
        progress: Progress | None = None,
    ) -> Self:
        """Fit; after an error or interrupt, restore the model fitted before."""
        before = dict(vars(self))
        try:
            self._column_of_feature = column_of_feature
            return self._fit(X, y, sample_weight, groups, progress)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, progress: Progress | None
    ) -> Self:
        begun = monotonic()
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max // 2)
        rows, signed = self._training_rows(X, y, sample_weight)
        equal = Repeats.among(rows.X, rows.signed > 0.0)
        n_rounds, budget = 1, self.time_budget
        if budget is not None and isinstance(self.cv, Integral):
            n_rounds = max(_ROWS_TIMES_ROUNDS // len(rows.signed), 1)
        rounds = [
            split_rows(self.cv, signed, groups, seed + k, equal)
            for k in range(min(n_rounds, _MAX_ROUNDS))
        ]
        self._duplicates = count_duplicates(equal, rounds[0])
        if budget is not None:
            budget = _TRAINING_SHARE * budget - (monotonic() - begun)

        def report(name: str, done: int, total: int) -> None:
            if progress is not None:
                progress(name, done, total)
            if self.verbose:
                print(f"[AUCClassifier] {done} of {total} models: {name}", flush=True)

        members = self._unfitted_members(rows.X)
        fitted = crossfit(members, rows, rounds, seed, budget, report)
        result = combine(fitted, rows, rounds[0], equal, seed)
        self.auc_, self.leaderboard_ = result.auc, result.leaderboard
        self.members_ = {member.name: member.models for member in result.members}
        self._blend, self._odds = result.blend, result.calibration
        self.n_iter_ = max(map(len, self.members_.values()))
        self._importances = []
        if monotonic() - begun <= (self.time_budget or np.inf):
            self._importances = self._compute_importances(rows, rounds[0], seed)
        return self

    def predict_proba(self, X: ArrayLike) -> Float:
        """Return calibrated class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities of ``classes_[0]`` and ``classes_[1]``, calibrated on
            out-of-fold scores by Platt's method.
        """
        score = self.decision_function(X)
        return np.column_stack([expit(-score), expit(score)])

    @property
    def columns_(self) -> list[ColumnKind]:
        """Name, kind and encoding of each column."""
        if self.recipe_:
            return column_kinds(self.recipe_["input"].get("roles", []))
        names = self._features_of_column()
        return [ColumnKind(name, "numeric", "1 feature") for name in names]

    @property
    def importances_(self) -> list[Importance]:
        """Permutation importance of each column, highest first."""
        return sorted(self._importances, key=lambda column: -column.drop)

    @property
    def feature_importances_(self) -> Float:
        """Permutation importance of each column, in the order of the columns."""
        if not self._importances:
            raise AttributeError(
                f"Importances were not computed: there are more than {_MAX_COLUMNS} "
                "columns, cv does not hold out every row once, or time_budget was "
                "exhausted. Use sklearn.inspection.permutation_importance."
            )
        return np.array([column.drop for column in self._importances])

    def explain(self) -> str:
        """Describe the model: classes, AUC, members, columns and duplicate rows."""
        check_is_fitted(self)
        return describe(
            self.classes_.tolist(),
            self.auc_,
            self.leaderboard_,
            self.importances_,
            self._duplicates,
        )

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``; see :func:`aucmax.load`.

        Only members of aucmax can be saved, since loading a file must not run code.
        """
        check_is_fitted(self)
        check_savable(self._unfitted_members(None))
        super().save(path)

    def _training_rows(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[TrainingRows, Float]:
        """Return the rows of non-zero weight, and the signed weights of all rows."""
        kinds = {"categorical": self.categorical, "text": self.text, "drop": self.drop}
        X, self.encoder_, column_of_feature = encode_table(X, kinds)
        if column_of_feature is not None:
            self._column_of_feature = column_of_feature
        X, signed = self._labelled(X, y, sample_weight, reset=True)
        self._fill = MedianImputer.fit(
            np.zeros((0, X.shape[1])) if sparse.issparse(X) else X
        )
        X = self._accepted(X)
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        self.recipe_ = None
        if self.encoder_ is not None:
            task = label_task(self.classes_)
            self.recipe_ = {
                "input": {"format": "parquet", **self.encoder_.to_json()},
                "task": task,
            }
        signed = signed / np.mean(np.abs(signed[signed != 0.0]))
        if not signed.all():
            X = X[signed != 0.0]
        if sparse.issparse(X) and X.shape[1] <= _WIDE:
            X = X.toarray()
        present = signed[signed != 0.0]
        fewest = min(np.count_nonzero(present < 0.0), np.count_nonzero(present > 0.0))
        if self.members is None and fewest < _MIN_CLASS_ROWS:
            raise ValueError(
                f"A class has {fewest} of {len(present)} rows; AUCClassifier needs at "
                f"least {_MIN_CLASS_ROWS} rows per class. BAM needs fewer."
            )
        return TrainingRows(X, present, sample_weight is not None), signed

    def _accepted(self, X: Any) -> Any:
        if not sparse.issparse(X):
            X = self._fill.transform(X)
        return super()._accepted(X)

    def _unfitted_members(self, X: Any) -> list[Member]:
        if self.members is None:
            return default_team(sparse.issparse(X), self._column_of_feature is not None)
        return named_members(self.members)

    def _compute_importances(
        self, rows: TrainingRows, folds: list[Fold], seed: int
    ) -> list[Importance]:
        """Return importances of the columns; empty if they cannot be computed."""
        columns = self._features_of_column()
        tests = [
            (partial(self._score, fold=k), fold.test)
            for k, fold in enumerate(folds)
            if fold.keep_model and len(fold.test)
        ]
        if len(columns) > _MAX_COLUMNS or not tests:
            return []
        rng = np.random.RandomState(seed)
        return importances(tests, rows.X, rows.signed > 0.0, columns, rng)

    def _features_of_column(self) -> dict[str, NDArray[np.int64]]:
        """Return the features of each column, by its name."""
        names = self._column_of_feature
        if names is None:
            known = getattr(self, "feature_names_in_", range(self.n_features_in_))
            names = [str(name) for name in known]
            names += [names[j] for j in self._fill.flagged]
        return features_by_name(names)

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        if sparse.issparse(X) and X.shape[1] <= _WIDE:
            size = max(_BLOCK // X.shape[1], 1)
            blocks = [X[i : i + size].toarray() for i in range(0, X.shape[0], size)]
            return np.concatenate([np.zeros(0), *map(self._score, blocks)])
        return self._score(X)

    def _score(self, X: Any, fold: int | None = None) -> Float:
        """Return calibrated scores, by all models or by those of one fold."""
        slope, total = self._odds[0], np.full(X.shape[0], self._odds[1])
        chosen = slice(None) if fold is None else slice(fold, fold + 1)
        for models, (mean, scale, w) in zip(
            self.members_.values(), self._blend.T, strict=True
        ):
            score = np.mean([score_with(model, X) for model in models[chosen]], axis=0)
            total += slope * w / scale * (score - mean)
        return total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def state(self) -> State:
        """Return the state of the blend and its models; see :mod:`aucmax.storage`."""
        state = super().state()
        counts = [(name, len(models)) for name, models in self.members_.items()]
        state.header["notes"] = Notes(
            self.auc_, self.leaderboard_, self._importances, self._duplicates, counts
        ).to_json()
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
        notes, own = Notes.from_json(state.header["notes"]), below("own", state.arrays)
        estimator.auc_, estimator.leaderboard_ = notes.auc, notes.leaderboard
        estimator._importances = notes.importances
        estimator._duplicates = notes.repeats
        estimator._fill = MedianImputer.restored(own, estimator.n_features_in_)
        width = estimator.n_features_in_ + len(estimator._fill.flagged)
        estimator.members_ = restore_members(state, dict(notes.models), width)
        found = check_arrays(own, {"blend": Spec("am"), "odds": Spec("b")}, width)
        estimator._blend, estimator._odds = blend, odds = found["blend"], found["odds"]
        expected = (3, len(estimator.members_))
        if blend.shape != expected or odds.shape != (2,):
            raise ValueError(
                f"blend and calibration have shapes {blend.shape} and {odds.shape}, "
                f"expected {expected} and (2,)."
            )
        if not (blend[1:] > 0.0).all() or not odds[0] > 0.0:
            raise ValueError("blend weights or calibration slope are not positive.")
        return estimator
