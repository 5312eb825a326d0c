"""AUCClassifier: a cross-fitted blend of linear, kernel and tree models.

Each member is cross-fitted (:mod:`aucmax.blend.crossfit`). The out-of-fold scores
determine the weights of the members (:mod:`aucmax.blend.combine`), the calibration of
probabilities and the AUC of the blend (:mod:`aucmax.blend.combine`).
"""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from aucmax.base.folds import Repeats
from aucmax.base.ranker import generator
from aucmax.blend.blended_model import MAX_COLUMNS, BlendedModel
from aucmax.blend.combine import combine
from aucmax.blend.crossfit import (
    Member,
    Progress,
    TrainingRows,
    crossfit,
    split_rows,
)
from aucmax.blend.default_members import (
    MANY_ROWS,
    check_savable,
    default_team,
    named_members,
)
from aucmax.blend.duplicates import count_duplicates
from aucmax.blend.explain import held_out_samples, typical_rows
from aucmax.blend.goal import reach
from aucmax.blend.honest import (
    Design,
    HonestEstimate,
    group_of_rows,
    time_of_rows,
    time_splits,
)
from aucmax.blend.layout import RowLayout
from aucmax.blend.leaks import warn_of_leaks
from aucmax.blend.table_input import (
    class_weighted,
    encode_table,
    first_columns,
    label_task,
    table_column,
)
from aucmax.core.rows import Float
from aucmax.goals import KINDS as GOALS
from aucmax.goals import Goal
from aucmax.goals import parse as parse_goal
from aucmax.tables.labels import check_positive
from aucmax.tables.periods import moments
from aucmax.tables.structure import find_structure

if TYPE_CHECKING:  # imports pyarrow
    from aucmax.tables.encoder import TableEncoder

_FOLDS, _FEW_FOLDS = 5, 3  # of few and of many rows
_MAX_ROUNDS = 10  # repetitions of the folds, if the time budget allows it …
_ROWS_TIMES_ROUNDS = 20_000  # … and there are few rows, to keep model files small
_MIN_CLASS_ROWS = 3  # the default members split the training rows of a fold once more


class AUCClassifier(BlendedModel):
    """Classifier for tables that maximises AUC, with no parameters to tune.

    It blends boosted trees with a linear or kernel ranker, and reports its AUC with a
    confidence interval and the importance of each column.

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
        Classifiers to blend, of aucmax or scikit-learn, which see encoded features. By
        default, for numbers, boosted trees, a linear and a kernel ranker; for tables
        with categories, boosted trees in three settings, with a kernel ranker if there
        are fewer than 3000 rows, and a linear one for fewer than 500 or texts. For more
        than 100,000 rows, boosted trees and a linear ranker; for sparse rows with more
        than 2000 features, two linear rankers.
    goal : str or goal, default="auc"
        What the ranking is for: "auc", "pauc@fpr=0.05", "recall@fpr=0.01",
        "precision@k=100", "precision@share=0.01" or "net_benefit@0.05..0.2"; see
        :mod:`aucmax.goals`. It sets ``goal_``, ``threshold_`` and the threshold of
        ``predict``. Training maximises AUC for every goal: training for the top of the
        ranking was not better there, see :doc:`Goals and thresholds </goals>`.
    cv : int, cross-validation generator or iterable, default=None
        Number of folds, or any ``cv`` that scikit-learn accepts; by default 5, and 3
        for more than 100,000 rows. Use ``TimeSeriesSplit`` to evaluate members on later
        rows than those they are trained on.
    time : str or int, default=None
        Column of dates or numbers that increase with time. Models are then tested on
        later rows than those they were trained on: the later half of the rows, in five
        blocks. ``auc_`` is the mean AUC of the last two blocks.
    group : str or int, default=None
        Column of groups, such as customers or patients, which new rows will not belong
        to. Each group is kept in one fold, and the column is not a feature. For an
        array, use ``groups`` of ``fit``.
    gap : float, default=0.0
        With ``time``: days (or units of the column) between training and test rows, as
        long as labels take to be known.
    time_budget : float, default=None
        Seconds from the start of ``fit`` after which no further member is started, and
        boosted trees stop growing; a member that has been started is finished.
        Remaining time is used to repeat the folds.
    categorical : sequence of str or int, default=None
        Columns of a data frame, by name or position, to treat as categorical. By
        default, the kind of a column is detected from its type and values, see
        ``columns_``. Categorical types of pandas, polars and Arrow and strings of
        digits are categorical.
    text : sequence of str or int, default=None
        Columns of a data frame to treat as text.
    drop : sequence of str or int, default=None
        Columns of a data frame to ignore.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label, which multiply ``sample_weight``. They change
        training and probabilities; AUC does not depend on them.
    n_jobs : int, default=None
        Number of threads that grow boosted trees; None uses all cores. Other members
        use all cores.
    random_state : int, RandomState instance or None, default=None
        Random seed of the folds and the members.
    verbose : bool, default=False
        Whether to print a line for each fitted model.

    Attributes
    ----------
    goal_ : Interval
        Value of the goal on out-of-fold scores, with a 95 % confidence interval.
    threshold_ : Threshold or None
        The threshold of ``predict``, and what it promises for new rows with a
        confidence of 95 %: for ``recall@fpr`` and ``pauc@fpr`` the false positive rate,
        for ``precision@k`` and ``precision@share`` the share of rows called positive.
        None if the goal promises nothing, or if the rows are too few (with a warning).
        It is chosen on ``out_of_fold_``. Row weights, copies of rows and groups count:
        with ``group`` or ``groups``, the promise is about rows of new groups.
    hints_ : list of Hint
        Columns of a data frame that look like time or groups, if neither was given;
        ``explain`` shows them. Splits do not change by themselves.
    out_of_fold_ : ndarray of shape (n_samples,)
        Score of each training row by models that were not fitted to it; NaN for rows
        that ``cv`` does not hold out. Scores of new rows are means over the folds and
        vary a little less; probabilities are calibrated for these. Not stored in model
        files.
    auc_ : AUCInterval
        AUC on held-out rows (mean over the folds), with a 95 % confidence interval for
        the AUC of the fitted model on new rows. With ``time`` or groups it is a
        prediction interval for a later period or for other groups, see Notes.
    leaderboard_ : list of BlendLeaderboardEntry
        The members, best first: AUC with confidence interval, weight, training time in
        seconds, and largest number of rows a model was trained on.
    columns_ : list of ColumnKind
        Columns of the table: name, kind (numeric, boolean, categorical, text, datetime,
        identifier, constant, empty) and encoding.
    importances_ : list of Importance
        Permutation importance of each column, highest first: the decrease of AUC on
        held-out rows when the column is shuffled, with a 95 % confidence interval.
        Computed when first asked for, or by ``save``. Empty for more than 200 columns
        (each hashed word of a text counts as one).
    feature_importances_ : ndarray of shape (n_columns,)
        The same decreases of AUC, in the order of the columns.
    members_ : dict
        Fitted models of each member with a positive weight.
    n_iter_ : int
        Largest number of models per member.
    classes_ : ndarray of shape (2,)
        The negative and the positive label.
    n_features_in_ : int
        Number of features, or of columns of a data frame, seen in ``fit``.
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
    dependence between folds. In simulations with 100 to 400 rows and the members of
    version 0.1.0, it covered the AUC of the fitted model in 92 % to 100 % of the runs;
    ``benchmarks/intervals.py classifier`` prints the table. The interval is valid for
    one fit, not for the best of many settings compared by ``auc_``.

    **Time and groups.** The interval of ``auc_`` is then a prediction interval: it has
    the AUC of a later period, or of as many other groups as a fold has, with 95 %
    confidence, if AUCs go on to vary as between the test blocks (or folds). It adds
    the variance between blocks beyond their sampling error, on the logit scale, and
    Student's t quantile for so few blocks; it is therefore wide. It does not foresee
    changes that the training rows do not show. With a single block, as for three
    distinct times, it is a confidence interval for that block.

    **Duplicate rows.** Equal rows with the same label are treated as copies and kept in
    one fold; otherwise models would be evaluated on rows they were trained on. If
    labels of equal rows differ more than a tenth as often as by chance, as in tables
    with few categorical columns, equal rows are treated as separate observations. If
    such a table contains copies, pass ``groups``. ``explain`` prints the counts.

    **Missing values.** Boosted trees see them. For other members, NaN in a dense array
    is replaced by the median of the column, and an indicator feature is added if there
    was one in training. Data frames with non-numeric columns are encoded
    as by ``aucmax train``; malformed cells count as missing, with a warning.

    References
    ----------
    D. Wolpert, "Stacked generalization", Neural Networks 5, 1992.

    M. van der Laan, E. Polley, A. Hubbard, "Super learner", Statistical Applications in
    Genetics and Molecular Biology 6, 2007.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": ["array-like", None],
        "goal": [str, *GOALS],
        "cv": ["cv_object", None],
        "time": [str, Integral, None],
        "group": [str, Integral, None],
        "gap": [Interval(Real, 0, None, closed="left")],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "categorical": ["array-like", None],
        "text": ["array-like", None],
        "drop": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        members: Any = None,
        *,
        goal: str | Goal = "auc",
        cv: Any = None,
        time: str | int | None = None,
        group: str | int | None = None,
        gap: float = 0.0,
        time_budget: float | None = None,
        categorical: Sequence[str | int] | None = None,
        text: Sequence[str | int] | None = None,
        drop: Sequence[str | int] | None = None,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
    ) -> None:
        self.members = members
        self.goal = goal
        self.cv = cv
        self.time = time
        self.group = group
        self.gap = gap
        self.time_budget = time_budget
        self.categorical = categorical
        self.text = text
        self.drop = drop
        self.class_weight = class_weight
        self.n_jobs = n_jobs
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
        columns = {
            name: table_column(X, name)
            for name in (self.time, self.group)
            if name is not None
        }
        design = self._design(columns, groups)
        self._fit_or_restore(X, y, sample_weight, design)
        if not design.kind and self.encoder_ is not None:
            positive = np.asarray(y) == self.classes_[1]
            found = first_columns(X)
            self.hints_ = find_structure(found, positive)
        return self

    def _design(self, columns: Mapping[Any, Any], groups: Any) -> Design:
        """Return time and group of each row."""
        time, group = None, group_of_rows(groups)
        if self.time is not None:
            time = time_of_rows(columns[self.time], str(self.time))
            self._dated = moments(np.asarray(columns[self.time])) is not None
        if self.group is not None:
            if groups is not None:
                raise ValueError("give groups to fit, or the parameter group, not both")
            group = group_of_rows(np.asarray(columns[self.group], dtype=object))
        if time is not None and self.cv is not None:
            raise ValueError("cv and time exclude each other: time has its own splits")
        return Design(time, group)

    def fit_encoded(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        encoder: "TableEncoder | None" = None,
        extra: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to rows that ``encoder`` has made of a table, as ``aucmax train`` does.

        ``extra`` has the columns ``time`` and ``group``, if there are any. ``progress``
        is called after each fitted model with the name of the member, the
        number of fitted models and the total.
        """
        design = self._design(extra or {}, None)
        return self._fit_or_restore(X, y, sample_weight, design, encoder, progress)

    def _fit_or_restore(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        design: Design,
        encoder: "TableEncoder | None" = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit; after an error or interrupt, restore the model fitted before."""
        before = dict(vars(self))
        try:
            return self._fit(X, y, sample_weight, design, encoder, progress)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        design: Design,
        encoder: "TableEncoder | None",
        progress: Progress | None,
    ) -> Self:
        begun, goal = monotonic(), parse_goal(self.goal)
        seed = generator(self.random_state).randint(np.iinfo(np.int32).max // 2)
        X, signed = self._encoded(X, y, sample_weight, encoder)
        present = signed != 0.0
        X = X if present.all() else X[present]
        weighted = sample_weight is not None or self.class_weight is not None
        positive = signed[present] > 0.0
        self._layout, table = self._layout.fit(X, positive, seed)
        equal = Repeats.among(X, positive)
        rows = TrainingRows(table, signed[present], weighted)
        n_rounds, budget, cv = 1, self.time_budget, self.cv
        if design.time is not None:
            chosen = design.chosen(present)
            splits = time_splits(chosen, self.gap, self._dated, rows.signed > 0.0)
            cv = [[np.flatnonzero(present)[part] for part in split] for split in splits]
        elif cv is None:
            cv = _FOLDS if len(rows.signed) <= MANY_ROWS else _FEW_FOLDS
        if budget is not None and isinstance(cv, Integral):
            n_rounds = max(_ROWS_TIMES_ROUNDS // len(rows.signed), 1)
        rounds = [
            split_rows(cv, signed, design.group, seed + k, equal)
            for k in range(min(n_rounds, _MAX_ROUNDS))
        ]
        self._duplicates = count_duplicates(equal, rounds[0])
        if budget is not None:
            budget -= monotonic() - begun

        def report(name: str, done: int, total: int) -> None:
            if progress is not None:
                progress(name, done, total)
            if self.verbose:
                print(f"[AUCClassifier] {done} of {total} models: {name}", flush=True)

        n_jobs = effective_n_jobs(-1 if self.n_jobs is None else self.n_jobs)
        members = self._unfitted_members(len(rows.signed))
        fitted = crossfit(members, rows, rounds, seed, budget, report, n_jobs)
        result = combine(fitted, rows, rounds[0], equal, seed)
        self.leaderboard_, self.hints_ = result.leaderboard, []
        honest = HonestEstimate(design.chosen(present), rows, rounds[0])
        self.auc_ = honest.interval(result.scores, result.auc)
        self._design_kind = honest.kind
        warn_of_leaks(table, self._column_names(), rows.signed > 0.0)
        self.members_ = {member.name: member.models for member in result.members}
        self._blend, self._odds = result.blend, result.calibration
        self.out_of_fold_ = np.full(len(present), np.nan)
        self.out_of_fold_[present] = result.scores
        group = None if design.group is None else design.group[present]
        if group is None and equal.copies:
            group = equal.of
        weight = None if sample_weight is None else np.asarray(sample_weight)[present]
        self.goal_, self.threshold_ = reach(
            goal, result.scores, rows.signed > 0.0, self.auc_, weight, group
        )
        self.n_iter_ = max(map(len, self.members_.values()))
        self._importances, self._held_out, self._tested = [], [], {}
        columns = self._features_of_column()
        self._background = typical_rows(X, columns, seed)
        if len(columns) <= MAX_COLUMNS:
            self._held_out = held_out_samples(rounds[0], X, rows.signed > 0.0, seed)
            self._tested = {member.name: member.tested for member in result.members}
        return self

    def save(self, path: str | Path) -> None:
        """Write the model to ``path``; see :func:`aucmax.load`.

        Only members of aucmax can be saved, since loading a file must not run code.
        """
        check_is_fitted(self)
        check_savable(self._unfitted_members(0))
        super().save(path)

    def _encoded(
        self, X: Any, y: Any, sample_weight: Any, encoder: "TableEncoder | None"
    ) -> tuple[Any, Float]:
        """Return encoded rows, and the signed weights of all rows."""
        kinds = {"categorical": self.categorical, "text": self.text, "drop": self.drop}
        if self.group is not None and encoder is None:
            kinds["drop"] = [*(self.drop or ()), self.group]  # new rows have new groups
        columns = np.zeros(0, object)
        self.recipe_ = None
        if encoder is None:
            X, encoder = encode_table(X, kinds)
            if encoder is not None:
                columns = np.array(encoder.schema.columns, object)
        self.encoder_ = encoder
        if self.class_weight is not None:
            sample_weight = class_weighted(self.class_weight, y, sample_weight)
        X, signed = self._labelled(X, y, sample_weight, reset=True)
        if len(columns):
            self.n_features_in_, self.feature_names_in_ = len(columns), columns
            task = label_task(self.classes_)
            described = {"format": "parquet", **encoder.to_json()}
            self.recipe_ = {"input": described, "task": task}
        self._column_of_feature, levels = None, None
        if encoder is not None:
            self._column_of_feature = encoder.column_of_feature
            if encoder.schema.encode == "codes":
                levels = encoder.schema.n_levels
        self._layout = RowLayout.of(X, levels)
        X = self._accepted(X)
        self._require_both(signed)
        check_positive(self.classes_, float(np.mean(signed > 0.0)))
        present = signed != 0.0
        fewest = min(np.sum(signed[present] < 0.0), np.sum(signed[present] > 0.0))
        if self.members is None and fewest < _MIN_CLASS_ROWS:
            raise ValueError(
                f"A class has {fewest} of {present.sum()} rows; AUCClassifier needs at "
                f"least {_MIN_CLASS_ROWS} rows per class. BAM needs fewer."
            )
        return X, signed / np.mean(np.abs(signed[present]))

    def _unfitted_members(self, n_rows: int) -> list[Member]:
        if self.members is None:
            return default_team(self._layout, n_rows)
        return named_members(self.members)
