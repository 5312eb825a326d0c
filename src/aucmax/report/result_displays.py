"""Displays of results: AUC by group and time, importances, learning curves."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics.auc import AUCInterval
from aucmax.metrics.groups import auc_by_group
from aucmax.report.display import COLOURS, Display, reach, take_literally
from aucmax.tables.periods import periods

_MAX_LEVEL = 6  # names of groups that are not turned


class GroupsDisplay(Display):
    """AUC of each group or period, with confidence intervals.

    Options: ``group`` (the group of each row) or ``time`` (its date), and ``level``.

    Examples
    --------
    >>> from aucmax.report import GroupsDisplay
    >>> y, score = [0, 1, 0, 1, 0, 1, 1, 0], [1, 2, 3, 2, 1, 4, 3, 2]
    >>> group = ["a"] * 4 + ["b"] * 4
    >>> GroupsDisplay.from_predictions(y, score, group=group).ax_.get_ylabel()
    'AUC'
    """

    labels = ("", "AUC")
    percent = (False, False)

    def _draw(
        self,
        positive: Any,
        score: Any,
        name: str,
        *,
        group: ArrayLike | None = None,
        time: ArrayLike | None = None,
        level: float = 0.95,
    ) -> None:
        if time is not None and group is None:
            found = auc_by_group(positive, score, periods(time), level=level).groups
            found.sort(key=lambda one: str(one.group))
        elif group is not None and time is None:
            found = auc_by_group(positive, score, group, level=level).groups
        else:
            raise ValueError("give one of group and time")
        self._plot([str(one.group) for one in found], [one.auc for one in found], name)
        if time is not None:
            self.ax_.get_lines()[-1].set_linestyle("solid")

    def _plot(self, names: list[str], areas: list[AUCInterval], label: str) -> None:
        value, low, high = (np.array([one[k] for one in areas]) for k in range(3))
        at = np.arange(len(names))
        style = self._style()
        bars, color = reach(value, low, high), style["color"]
        self.ax_.errorbar(at, value, yerr=bars, fmt="o", color=color, label="_groups")
        self.ax_.plot(at, value, color=color, linestyle="none", label=label)
        many = {"rotation": 45, "ha": "right"} if len(names) > _MAX_LEVEL else {}
        self.ax_.set_xticks(at, names, **many)
        take_literally(self.ax_.get_xticklabels())


class ImportanceDisplay(Display):
    """Importance of each column of an AUCClassifier, with confidence intervals.

    Option: ``top``, the number of columns (default 15).

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import AUCClassifier
    >>> from aucmax.report import ImportanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = AUCClassifier(random_state=0).fit(X, X[:, 0] > 0.5)
    >>> ImportanceDisplay.from_estimator(model).ax_.get_xlabel()
    'Loss of AUC when the column is shuffled'
    """

    labels = ("Loss of AUC when the column is shuffled", "")
    percent = (False, False)

    @classmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Not available: importances belong to an estimator."""
        raise TypeError("importances belong to an estimator: use from_estimator")

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls, estimator: Any, *, ax: Any = None, top: int = 15
    ) -> Self:
        """Plot the importances of a fitted AUCClassifier.

        Parameters
        ----------
        estimator : AUCClassifier
            A fitted classifier with ``importances_``.
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        top : int, default=15
            Number of columns.

        Returns
        -------
        display
            With attributes ``ax_`` and ``figure_``.
        """
        display = cls(ax)
        found = sorted(estimator.importances_, key=lambda one: -one.drop)[:top][::-1]
        drop = np.array([one.drop for one in found])
        low, high = (np.array([one[k] for one in found]) for k in (2, 3))
        at = np.arange(len(found))
        bars = reach(drop, low, high)
        display.ax_.errorbar(drop, at, xerr=bars, fmt="o", color=COLOURS[0])
        display.ax_.axvline(0.0, color="0.6", lw=1, ls=":")
        display.ax_.set_yticks(at, [one.column for one in found])
        take_literally(display.ax_.get_yticklabels())
        display._dress()
        return display
