"""A fitted blend: scores, importances, and what a model file stores of it."""

from math import isfinite, nan
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_array, check_is_fitted

from aucmax.base.ranker import Ranker
from aucmax.blend.combine import BlendLeaderboardEntry
from aucmax.blend.crossfit import score_with
from aucmax.blend.duplicates import DuplicateCounts
from aucmax.blend.explain import (
    BACKGROUND,
    WIDEST,
    HeldOutSample,
    Importance,
    Reason,
    contributions,
    describe,
    estimate,
    features_by_name,
    importances,
    largest,
    results_html,
    typical_rows,
)
from aucmax.blend.layout import RowLayout, TableRows
from aucmax.core.rows import Float
from aucmax.core.validation import MATRIX, MOST, check_structure
from aucmax.goals import Goal, parse
from aucmax.metrics._variance import Interval
from aucmax.metrics.auc import AUCInterval
from aucmax.storage.state import (
    Spec,
    State,
    below,
    check_arrays,
    restore,
    whole_numbers,
)
from aucmax.tables.column_kinds import ColumnKind, column_kinds
from aucmax.tables.structure import Hint
from aucmax.thresholds import Promise, Threshold
from aucmax.thresholds import parse as parse_promise

Ints = NDArray[np.int64]


_WHOLE = 1 << 63


class Notes(NamedTuple):
    """Results of a fit, and the number of models of each member."""

    auc: AUCInterval
    leaderboard: list[BlendLeaderboardEntry]
    importances: list[Importance]  # in the order of the columns
    repeats: DuplicateCounts
    models: list[tuple[str, int]]
    goal: Interval
    threshold: Threshold | None
    design: str  # "time", "group" or ""
    hints: list[Hint]

    def to_json(self) -> dict[str, Any]:
        """Return lists and numbers, by the names of the fields."""
        return {
            "auc": list(self.auc),
            "leaderboard": [list(entry) for entry in self.leaderboard],
            "importances": [list(column) for column in self.importances],
            "repeats": list(self.repeats),
            "models": [list(member) for member in self.models],
            "goal": list(self.goal),
            "threshold": None if self.threshold is None else _told(self.threshold),
            "design": self.design,
            "hints": [list(hint) for hint in self.hints],
        }

    @classmethod
    def from_json(cls, notes: dict[str, Any]) -> "Notes":
        """Return the notes of a model file; raise a ValueError if invalid."""
        repeated, split = map(_number, notes["repeats"])
        return cls(
            AUCInterval(*map(_number, notes["auc"])),
            [BlendLeaderboardEntry._make(_line(line)) for line in notes["leaderboard"]],
            [Importance._make(_line(line)) for line in notes["importances"]],
            DuplicateCounts(int(repeated), int(split)),
            [(_text(name), int(_number(count))) for name, count in notes["models"]],
            Interval(*map(_number, notes["goal"])),
            _threshold(notes["threshold"]),
            _design(notes["design"]),
            [Hint(*map(_text, hint)) for hint in notes["hints"]],
        )


def _told(found: Threshold) -> dict[str, Any]:
    """Return a threshold as JSON values; None where a number is not finite."""
    values = found._asdict() | {"promise": list(found.promise)}
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in values.items()
    }


def _design(told: Any) -> str:
    if told not in ("", "time", "group"):
        raise ValueError(f"found {told!r}, expected a design: time or group.")
    return str(told)


def _threshold(told: Any) -> Threshold | None:
    if told is None:
        return None
    rate, bound = told["promise"]
    promise = Promise(_text(rate), _number(bound))
    parse_promise(str(promise))  # raises an error if there is no such rate
    numbers = {
        key: nan if value is None else _number(value)
        for key, value in told.items()
        if key != "promise"
    }
    return Threshold(promise=promise, **numbers)


def restore_members(
    state: State, counts: dict[str, int], widths: set[int]
) -> dict[str, list[Any]]:
    """Return the models of each member; raise a ValueError if they are invalid."""
    models = {name: restore(child) for name, child in state.children.items()}
    for name, model in models.items():
        if not isinstance(model, Ranker) or model.n_features_in_ not in widths:
            expected = " or ".join(map(str, sorted(widths)))
            raise ValueError(f"{name} is not a model with {expected} features.")
    if not counts or sum(counts.values()) != len(models) or 0 in counts.values():
        raise ValueError(
            f"the file has {len(models)} models, but {sum(counts.values())} are "
            f"expected for its members: {', '.join(counts) or 'none'}."
        )
    return {
        name: [models[f"{name}.{k}"] for k in range(count)]
        for name, count in counts.items()
    }


def _line(values: Any) -> list[Any]:
    name, *numbers = values
    return [_text(name), *map(_number, numbers)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"found {value!r}, expected a name.")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"found {value!r}, expected a number.")
    if isinstance(value, int) and abs(value) >= _WHOLE:
        raise ValueError("found an integer of more than 63 bits, expected a number.")
    return value


_BLOCK = 1 << 22  # values of sparse rows that are made dense at a time
MAX_COLUMNS = 200  # with importances; more would take too long


class BlendedModel(Ranker):
    """Base class of AUCClassifier: what is known after ``fit``."""

    hints_: list[Hint]
    goal: str | Goal
    goal_: Interval
    threshold_: Threshold | None
    out_of_fold_: Float
    auc_: AUCInterval
    leaderboard_: list[BlendLeaderboardEntry]
    members_: dict[str, list[Any]]
    _design_kind: str  # "time", "group" or "": what auc_ is an estimate for
    _duplicates: DuplicateCounts
    _importances: list[Importance]  # in the order of the columns
    _held_out: list[HeldOutSample]  # rows for importances that were not asked for yet
    _tested: dict[str, list[Any]]  # and each member's models that held them out
    _layout: RowLayout
    _background: Float | None = None  # typical values of each feature
    _column_of_feature: list[str] | None = None  # None if X was not encoded
    _blend: Float  # (3, members) mean and scale of the scores, and weights
    _odds: Float  # (2,) slope and offset of the calibration

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

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predicted label of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The rows to classify.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of ``classes_``: the positive one from ``threshold_`` on, if the
            goal has one, otherwise above a probability of one half.
        """
        called = self.called(self.decision_function(X))
        labels: NDArray[Any] = self.classes_[called.astype(np.intp)]
        return labels

    def called(self, scores: Float) -> NDArray[np.bool_]:
        """Return which scores ``predict`` calls positive."""
        if self.threshold_ is not None:
            return np.asarray(scores >= self.threshold_.value)
        return np.asarray(scores > parse(self.goal).score)

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
        return sorted(self._column_importances(), key=lambda column: -column.drop)

    @property
    def feature_importances_(self) -> Float:
        """Permutation importance of each column, in the order of the columns."""
        found = self._column_importances()
        if not found:
            raise AttributeError(
                f"Importances were not computed: there are more than {MAX_COLUMNS} "
                "columns. Use sklearn.inspection.permutation_importance."
            )
        return np.array([column.drop for column in found])

    def explain(self) -> str:
        """Describe the model: classes, AUC, members, columns and duplicate rows."""
        check_is_fitted(self)
        return describe(
            self.classes_.tolist(),
            self.auc_,
            self.leaderboard_,
            self.importances_,
            self._duplicates,
            self.hints_,
            self._design_kind,
        )

    def estimate(self) -> str:
        """Return the AUC with its interval as text, and what the interval promises."""
        check_is_fitted(self)
        return estimate(self.auc_, self._design_kind)

    @property
    def row_width(self) -> int:
        """Number of features of an encoded row."""
        return self._layout.width

    def decision_function(self, X: ArrayLike) -> Float:
        """Return the score of each row; higher scores rank nearer ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds of ``classes_[1]``.
        """
        check_is_fitted(self)
        if self.encoder_ is not None and hasattr(X, "columns"):
            return self.score_rows(self._accepted(self.encoder_.transform(X)))
        if self.encoder_ is None and self.row_width == self.n_features_in_:
            return super().decision_function(X)
        expected = (
            f"but AUCClassifier was fitted to a table of {self.n_features_in_} "
            "columns: pass a data frame with them."
        )
        check_structure(X)
        try:
            rows = check_array(X, **MATRIX)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X is {type(X).__name__}, {expected} ({error})") from None
        if rows.shape[1] != self.row_width:
            raise ValueError(f"X has {rows.shape[1]} features, {expected}")
        return self.score_rows(self._accepted(rows))

    def _accepted(self, X: Any) -> Any:
        if not self._layout.may_lack(X):
            return super()._accepted(X)
        values = X.data if sparse.issparse(X) else X
        limit = min(MOST, float(np.finfo(values.dtype).max))
        if (np.abs(values) > limit).any():  # missing values are not
            known = X.copy()
            values = known.data if sparse.issparse(known) else known
            values[np.isnan(values)] = 0.0
            super()._accepted(known)
        return X

    def reasons(
        self, X: ArrayLike, *, background: ArrayLike | None = None, top: int = 3
    ) -> list[list[Reason]]:
        """Return the columns that contribute most to the score of each row.

        The contribution of a column is the mean decrease of the score, in log-odds, if
        its values are replaced by those of other rows. It explains the model, not the
        world; columns that say the same share or hide their contributions.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The rows to explain; a few, as each is scored again for every column.
        background : {array-like, sparse matrix, data frame}, optional
            Rows to compare with, of which 30 are used; by default values of 30 rows of
            the training data, which the model keeps.
        top : int, default=3
            Number of columns for each row.

        Returns
        -------
        list of list of Reason
            For each row named tuples (column, contribution), the largest first.
        """
        rows, columns = self._encoded_rows(X), self._features_of_column()
        chosen = self._background
        if background is not None:
            chosen = typical_rows(self._encoded_rows(background), columns)
        if chosen is None:
            raise ValueError(
                f"reasons of rows with {self.row_width} features need a background: "
                "the model keeps none of so many features. Pass background, some "
                "typical rows."
            )
        return largest(
            contributions(rows, chosen, columns, self.score_rows), columns, top
        )

    def _encoded_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        if self.encoder_ is not None and hasattr(X, "columns"):
            return self._accepted(self.encoder_.transform(X))
        check_structure(X)
        return self._accepted(check_array(X, **MATRIX))

    def _column_importances(self) -> list[Importance]:
        """Return the importances, which are computed when they are first asked for."""
        if self._held_out:
            columns = self._features_of_column()
            self._importances = importances(
                self._held_out, self._score_encoded, columns
            )
            self._held_out, self._tested = [], {}
        return self._importances

    def _score_encoded(self, X: Any, fold: int) -> Float:
        return self._score(self._layout.rows(X), fold)

    def _features_of_column(self) -> dict[str, NDArray[np.int64]]:
        """Return the encoded features of each column, by its name."""
        if self._column_of_feature is None and self.encoder_ is not None:
            return features_by_name(self.encoder_.column_of_feature)
        return features_by_name(self._column_names())

    def _column_names(self) -> list[str]:
        """Return the name of the column of each feature."""
        names = self._column_of_feature
        if names is None:
            known = getattr(self, "feature_names_in_", range(self.n_features_in_))
            names = [str(name) for name in known]
        return names

    def score_rows(self, X: Any) -> Float:
        """Return the scores of validated rows."""
        if sparse.issparse(X) and self._layout.view is not None:
            size = max(_BLOCK // X.shape[1], 1)
            blocks = [X[i : i + size] for i in range(0, X.shape[0], size)]
            scores = [self._score(self._layout.rows(block)) for block in blocks]
            return np.concatenate([np.zeros(0), *scores])
        return self._score(self._layout.rows(X))

    def _score(self, rows: TableRows, fold: int | None = None) -> Float:
        """Return calibrated scores, by all models or by those of one fold.

        A row with a new category has the mean score of its stand-ins.
        """
        scores = self._blended(rows, fold)
        new, versions = rows.replacing_new()
        if len(new):
            scores[new] = np.mean([self._blended(one, fold) for one in versions], 0)
        return scores

    def _blended(self, rows: TableRows, fold: int | None) -> Float:
        slope, total = self._odds[0], np.full(len(rows), self._odds[1])
        for (name, models), (mean, scale, w) in zip(
            self.members_.items(), self._blend.T, strict=True
        ):
            chosen = models if fold is None else [self._tested[name][fold]]
            scores = [score_with(model, rows) for model in chosen]
            total += slope * w / scale * (np.mean(scores, axis=0) - mean)
        return total

    def _html_repr(self) -> str:
        """Return the diagram of scikit-learn, with the results below it."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "auc_"):
            return diagram
        return diagram + results_html(self.auc_, self.leaderboard_, self._design_kind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def state(self) -> State:
        """Return the state of the blend and its models; see :mod:`aucmax.storage`."""
        state = super().state()
        counts = [(name, len(models)) for name, models in self.members_.items()]
        state.header["notes"] = Notes(
            auc=self.auc_,
            leaderboard=self.leaderboard_,
            importances=self._column_importances(),
            repeats=self._duplicates,
            models=counts,
            goal=self.goal_,
            threshold=self.threshold_,
            design=self._design_kind,
            hints=self.hints_,
        ).to_json()
        state.header["encoded"] = self.row_width
        own = {"blend": self._blend, "odds": self._odds, **self._layout.arrays()}
        if self._background is not None:
            places = np.flatnonzero(self._background)  # words are mostly zeros
            own["typical_places"] = places
            own["typical_values"] = self._background.ravel()[places]
            state.header["typical"] = len(self._background)
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
        estimator._held_out, estimator._tested = [], {}
        estimator._duplicates = notes.repeats
        estimator.goal_, estimator.threshold_ = notes.goal, notes.threshold
        estimator.hints_ = notes.hints
        estimator._design_kind = notes.design
        encoded = state.header["encoded"]
        estimator._layout = layout = RowLayout.restored(encoded, own)
        if "typical" in state.header:
            count = state.header["typical"]
            estimator._background = _background(count, own, layout.width)
        counts, widths = dict(notes.models), layout.member_widths
        estimator.members_ = restore_members(state, counts, widths)
        found = check_arrays(own, {"blend": Spec("am"), "odds": Spec("b")}, encoded)
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


def _background(count: int, own: dict[str, NDArray[Any]], width: int) -> Float:
    """Return the typical rows of stored arrays; raise a ValueError if invalid."""
    places, values = own["typical_places"], np.asarray(own["typical_values"])
    count = count if isinstance(count, int) else 0
    if (not 1 <= count <= BACKGROUND or width > WIDEST) or (
        places.shape != values.shape or np.isinf(values).any()
    ):
        raise ValueError("the typical rows of the model are invalid.")
    rows = np.zeros((count, width))
    rows.flat[whole_numbers("places", places, 0, rows.size - 1)] = values
    return rows
