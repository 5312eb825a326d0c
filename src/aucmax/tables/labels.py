"""Tasks: rules for the positive and negative labels.

Files have labels of all kinds: -1 and +1, 1 to 26, ``spam`` and ``ham``. A
:class:`Task` says which of them are positive. The labels of the first rows settle it;
from then on, a label means the same in every batch, and an unknown label is an error.

Numbers are compared by value: "1", "+1" and 1.0 are one label. Words with a common
meaning are compared without case: "yes", "Yes" and "YES" are one label.

Comparison, order and display of labels.

Meaning of common text labels such as fraud, churn, yes and no.

Words for the positive class (fraud, churn, a disease) and the negative one; case and
surrounding blanks do not matter. The list is short on purpose: words that may be either
(success, active, won) are not in it.

Warning if the labels suggest that the other class is the positive one.
"""

import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning

Label: TypeAlias = float | str

_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def label_key(label: Any) -> Label | None:
    """Return the value that labels are compared by; None if missing."""
    if isinstance(label, str):
        text = label.strip()
        return float(text) if _NUMBER.fullmatch(text) else text or None
    if label is None or label != label:
        return None
    return float(label)


def label_identity(label: Label) -> Label:
    """Return the value that all spellings of a label share."""
    return identity(label) if isinstance(label, str) else label


def label_order(label: Label) -> tuple[bool, Label]:
    """Return a sort key: numbers first."""
    return isinstance(label, str), label


def shown_label(label: Any) -> str:
    """Return a label for display."""
    key = label_key(label)
    if isinstance(key, float):
        return str(int(key)) if key.is_integer() and abs(key) < 1e15 else repr(key)
    return str(key)


def shell_argument(label: Label) -> str:
    """Return a label as a shell argument of ``--positive``."""
    text = _quoted(shown_label(label))
    if text[:1] in (">", "@"):  # would be a rule
        text = f'"{text}"'
    return shlex.quote(text)


def _quoted(label: str) -> str:
    """Return a label, quoted if necessary in a list of labels."""
    if "," not in label and label[:1] != '"':
        return label
    doubled = label.replace('"', '""')
    return f'"{doubled}"'


def listed_labels(labels: Iterable[Label], most: int = 8) -> str:
    """Return sorted labels for a message, at most ``most``."""
    names = [_quoted(shown_label(label)) for label in sorted(labels, key=label_order)]
    if len(names) > most:
        names[most - 2 : -1] = ["…"]
    return ", ".join(names)


_WANTED = """
    yes true positive pos
    fraud fraudulent scam spam phishing malicious malware attack intrusion
    bad default defaulted churn churned
    disease diseased malignant cancer sick ill infected affected dead died deceased
    fail failed failure fault faulty defect defective broken
    anomaly anomalous abnormal outlier
    click clicked converted toxic
"""
_UNWANTED = """
    no false negative neg
    legit legitimate genuine ham benign clean safe
    good ok okay retained
    healthy unaffected alive control
    normal nominal inlier
    absence absent none
"""
# Recognised in pairs only: F may mean female.
_LETTERS = (("n", "y"), ("f", "t"))
_MEANINGS = dict.fromkeys(_UNWANTED.split(), -1) | dict.fromkeys(_WANTED.split(), 1)
_NOT = re.compile(r"(?:not|non|no|without)[\s_-]*(.+)")


def side(label: str) -> int:
    """Return 1 for a positive word, -1 for a negative one, 0 if unknown."""
    word = folded(label)
    if word in _MEANINGS:
        return _MEANINGS[word]
    negation = _NOT.fullmatch(word)
    return -_MEANINGS.get(negation[1], 0) if negation else 0


def identity(label: str) -> str:
    """Return a label without case if it is a known word, else unchanged."""
    return folded(label) if side(label) else label


def higher(first: str, second: str) -> str | None:
    """Return the positive one of two labels by their words, if known."""
    sides = side(first), side(second)
    if sides[0] != sides[1]:
        return first if sides[0] > sides[1] else second
    words = folded(first), folded(second)
    for one, other, label in ((*words, first), (*words[::-1], second)):
        negation = _NOT.fullmatch(other)
        if (other, one) in _LETTERS or (negation and negation[1] == one):
            return label
    return None


def folded(label: str) -> str:
    """Return a word without case and surrounding blanks."""
    return label.strip().casefold()


def check_positive(classes: NDArray[Any], share: float) -> None:
    """Warn if the labels suggest that the other class is the positive one.

    scikit-learn's rule takes the larger label, ``classes_[1]``. ``aucmax train`` takes
    the one that the words mean (bad, fraud), else the rarer one; ``share`` is the share
    of rows that have the larger label.
    """
    low, high = classes.tolist()
    if not (isinstance(low, str) and isinstance(high, str)):
        return
    meant = higher(low, high)
    if meant == low or (meant is None and share > 0.5):
        why = "as its name suggests" if meant else f"{1.0 - share:.1%} of the rows"
        warn_user(
            f"The positive class is {high!r}, the larger label, as in scikit-learn. "
            f"If it should be {low!r}, {why}, fit to y == {low!r}.",
            DataWarning,
        )


# Pairs that are recognised from one label alone, so that a stream may begin with one
# class. Other pairs, such as 1 and 2, must be seen together.
_NUMBERS = ((-1.0, 1.0), (0.0, 1.0))
_WORDS = (("false", "true"), ("no", "yes"))
_SPELLINGS = (str.lower, str.capitalize, str.upper)

_SIDES = {"negative": -1, "positive": 1, "drop": 0}


class LabelError(ValueError):
    """Raised for an unknown or missing label."""

    def __init__(self, problem: str, row: int) -> None:
        super().__init__(f"Row {row}: {problem}")
        self.problem = problem
        self.row = row  # its place in the labels, from 0


class Task(NamedTuple):
    """Rule for the positive and negative labels; see :meth:`of`.

    ``Task()`` is settled by the data: see :meth:`settle`.

    Examples
    --------
    >>> from aucmax.tables.labels import Task
    >>> Task.of("yes").positives(["yes", "no", "maybe"])
    array([ True, False, False])
    """

    positive: tuple[Label, ...] = ()
    negative: tuple[Label, ...] = ()
    others: str = "error"  # what other labels are: negative, positive, drop or error
    halves: bool = False  # the two groups are halves of the labels, in sorted order
    seed: int | None = None  # or drawn with this seed
    above: float | None = None  # positive are the numbers above this one
    coded: bool = False  # negative is one of the labels given, not known yet which

    @classmethod
    def of(
        cls,
        positive: Label | Sequence[Label] | None = None,
        negative: Label | Sequence[Label] | None = None,
        *,
        others: str | None = None,
        halves: bool = False,
        seed: int | None = None,
        above: float | None = None,
    ) -> "Task":
        """Return a task.

        Parameters
        ----------
        positive, negative : str, number or sequence of them, default=None
            Labels of a class; commas in a string separate several, except within
            double quotes. If one class is given, all other labels are the other class.
        others : {"error", "drop", "negative", "positive"}, default=None
            What to do with rows that have none of these labels. None: "error" if both
            classes are given.
        halves : bool, default=False
            The papers' rule for several classes: the first half of the labels in sorted
            order is positive, the second half negative. The middle one of an odd number
            is negative.
        seed : int, default=None
            With ``halves``: as many labels, but drawn at random.
        above : float, default=None
            Labels are numbers, and positive if greater than this.

        Returns
        -------
        Task

        Examples
        --------
        >>> from aucmax.tables.labels import Task
        >>> Task.of("3,5").positives([1, 2, 3, 4, 5])
        array([False, False,  True, False,  True])
        >>> print(Task.of("spam", "ham", others="drop"))
        spam against ham, others dropped
        """
        grouped = positive is not None or negative is not None
        if grouped + halves + (above is not None) > 1:
            raise ValueError(
                "Labels can be set by name, by halves or by a threshold: use one."
            )
        if others is not None and (not grouped or others not in (*_SIDES, "error")):
            raise ValueError(
                "others must be 'error', 'drop', 'negative' or 'positive', and needs "
                f"labels given by name, not {others!r}."
            )
        if seed is not None and not halves:
            raise ValueError("seed needs halves=True, to draw the halves at random.")
        if above is not None:
            if not np.isfinite(above):
                raise ValueError(f"above must be a finite number, not {above!r}.")
            return cls(above=float(above))
        if halves:
            return cls(halves=True, seed=None if seed is None else int(seed))
        if not grouped:
            return cls()
        ups, downs = _group(positive), _group(negative)
        if () in (positive is None or ups, negative is None or downs):
            raise ValueError("A class needs at least one label.")
        if both := set(ups) & set(downs):
            raise ValueError(
                f"Labels are both positive and negative: {listed_labels(both)}"
            )
        if others is None:
            one_only = "negative" if not downs else "positive"
            others = "error" if ups and downs else one_only
        if others in ("error", "drop") and not (ups and downs):
            raise ValueError(f"others={others!r} needs the labels of both classes.")
        return cls(ups, downs, others)

    @classmethod
    def parse(cls, text: str | None) -> "Task":
        """Return the task of a ``--positive`` option.

        Labels, separated by commas, in double quotes if they have commas themselves;
        ``>3`` for numbers above 3; ``@half`` for the first half of the labels in sorted
        order, ``@half:7`` for a half drawn with seed 7.

        Examples
        --------
        >>> from aucmax.tables.labels import Task
        >>> print(Task.parse(">2.5"))
        above 2.5
        >>> Task.parse('"yes, please",yes').positive
        ('yes, please', 'yes')
        """
        if text is None or text[:1] not in (">", "@"):
            return cls.of(text)
        try:
            if text[0] == ">":
                return cls.of(above=float(text[1:]))
            word, colon, seed = text[1:].partition(":")
            if word == "half":
                return cls.of(halves=True, seed=int(seed) if colon else None)
        except ValueError:
            pass
        raise ValueError(
            f"positive={text}: labels with commas, or >NUMBER, @half, @half:SEED."
        )

    @property
    def settled(self) -> bool:
        """Whether the meaning of every label is fixed."""
        return bool(self.positive or self.negative) or self.above is not None

    @property
    def by_rarity(self) -> bool:
        """Whether the positive label was chosen because it is the rarer one."""
        pair = (*self.negative, *self.positive)
        if len(pair) != 2 or self.halves or self.others != "error":
            return False
        return _higher(*pair) is None

    def settle(self, y: ArrayLike | None) -> "Task":
        """Return the task with its labels fixed by the first labels of the data.

        Given labels and thresholds do not change. Otherwise

        - -1/+1, 0/1, true/false and yes/no are recognised, even from one of the two: 1,
          true and yes are positive;
        - of two other labels, the positive one is found from known words (fraud, bad,
          spam against legit, good, ham) or the sign of numbers; else it is the rarer
          one, and the larger one if both have as many rows;
        - ``halves`` are halves of these labels;
        - anything else is a ValueError with a remedy.

        Without labels, the task does not change.
        """
        y = _labels(y)
        if self.settled:
            self._check_kind(y)
            return self
        rows = _counts(y)
        if not rows:
            return self
        return self._halve(list(rows)) if self.halves else _guess(_merged(rows))

    def sides(self, y: ArrayLike | None) -> NDArray[np.int8]:
        """Return +1 for positive rows, -1 for negative ones, 0 for those to drop.

        A task that is not settled is settled by these labels, for this call.

        Raises
        ------
        LabelError
            If a label is unknown or missing; its ``row`` is the index in ``y``.
        """
        y = _labels(y)
        if not y.size:
            return np.zeros(0, np.int8)
        task = self.settle(y)
        if task.above is not None:
            _refuse_missing(y)
            return np.where(y > task.above, 1, -1).astype(np.int8)
        side = task._of_numbers(y) if y.dtype.kind == "f" else task._of_words(y)
        if task.coded and len(_counts(y[side < 0])) > 1:
            raise ValueError(f"There are 3 labels: -1, 0, 1; {_remedy()}.")
        return side

    def positives(self, y: ArrayLike | None) -> NDArray[np.bool_]:
        """Return which rows are positive; all others are negative.

        Raises
        ------
        LabelError
            As :meth:`sides`; also if there are rows to drop.
        """
        side = self.sides(y)
        if self.others == "drop" and not side.all():
            row = int(np.argmax(side == 0))
            raise LabelError(
                f"label {shown_label(_labels(y)[row])} is neither positive nor "
                f"negative: the task is {self}.",
                row,
            )
        return side > 0

    def told(self, positives: int, rows: int) -> str:
        """Return the positive labels, their share of rows, and how to change them."""
        share = 100.0 * positives / max(rows, 1)
        count = f"({positives:,} of {rows:,} rows, {share:.3g} %)"
        pair = len(self.positive) == 1 and (len(self.negative) == 1 or self.coded)
        if not pair or self.halves or self.others != "error":
            return f"Positive: {self} {count}."
        other = " or ".join(map(shell_argument, self.negative))
        return (
            f"Positive: {shown_label(self.positive[0])} {count}; "
            f"to rank the other label high: --positive {other}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the task as JSON values."""
        content: dict[str, Any] = {}
        for name, value in self._asdict().items():
            if value != self._field_defaults[name]:
                content[name] = list(value) if isinstance(value, tuple) else value
        return content

    @classmethod
    def from_json(cls, content: Any) -> "Task":
        """Return the task from the result of :meth:`to_json`."""
        try:
            task = cls(**content)
            task = task._replace(
                positive=_group(tuple(task.positive)),
                negative=_group(tuple(task.negative)),
            )
            if task.others not in (*_SIDES, "error") or task.to_json() != content:
                raise ValueError("values that no task has")
            return task
        except (TypeError, ValueError) as error:
            raise ValueError(f"Invalid task: {content!r} ({error}).") from None

    def __str__(self) -> str:
        if self.above is not None:
            return f"above {shown_label(self.above)}"
        if self.halves:
            drawn = "" if self.seed is None else f", drawn with seed {self.seed}"
            return f"first half of the labels against the second{drawn}"
        if not self.settled:
            return "as the labels say"
        high, low = listed_labels(self.positive), listed_labels(self.negative)
        if self.coded:
            low = low.replace(", ", " or ")
        rest = {"drop": ", others dropped", "error": ""}.get(self.others)
        if rest is None:
            rest = f", others {self.others}" if high and low else ""
        return f"{high or 'rest'} against {low or 'rest'}{rest}"

    def _halve(self, seen: list[Label]) -> "Task":
        if len(seen) == 1:
            raise ValueError(
                f"All labels are {shown_label(seen[0])}: cannot make halves."
            )
        labels = seen
        if self.seed is not None:
            # RandomState, because its stream is the same in every version of NumPy.
            draw = np.random.RandomState(self.seed).permutation(len(seen))
            labels = [seen[i] for i in draw]
        first, second = labels[: len(seen) // 2], labels[len(seen) // 2 :]
        return self._replace(
            positive=tuple(sorted(first, key=label_order)),
            negative=tuple(sorted(second, key=label_order)),
        )

    def _check_kind(self, y: NDArray[Any]) -> None:
        """Raise an error if labels have another type than the task."""
        if self.above is not None:
            if y.size and y.dtype.kind != "f":
                raise ValueError(
                    f"Labels are text, such as {shown_label(y[0])}, and cannot be "
                    f"compared with {shown_label(self.above)}; {_remedy()}."
                )
            return
        named = (*self.positive, *self.negative)
        words = [label for label in named if isinstance(label, str)]
        if words and y.size and y.dtype.kind == "f":
            raise ValueError(
                f"Labels are numbers, such as {shown_label(y[0])}, and cannot be "
                f"{listed_labels(words)}; {_remedy()}."
            )

    def _of_numbers(self, y: NDArray[Any]) -> NDArray[np.int8]:
        sign = {**dict.fromkeys(self.negative, -1), **dict.fromkeys(self.positive, 1)}
        known = np.array(sorted(sign), np.float64)
        at = np.minimum(np.searchsorted(known, y), known.size - 1)
        hit = known[at] == y
        if not hit.all():
            _refuse_missing(y)
            if self.others == "error":
                self._refuse_unknown(y, int(np.argmin(hit)))
        signs = np.array([sign[label] for label in known], np.int8)
        return np.where(hit, signs[at], np.int8(_SIDES.get(self.others, 0)))

    def _of_words(self, y: NDArray[Any]) -> NDArray[np.int8]:
        values = y.tolist()
        side_of = {
            **dict.fromkeys(self.negative, -1),
            **dict.fromkeys(self.positive, 1),
        }
        # The exact spelling comes first: two spellings may be in different classes.
        spelled = {label_identity(label): side for label, side in side_of.items()}
        others = _SIDES.get(self.others)

        def sign_of(key: Label | None) -> int | None:
            if key is None:
                return None
            return side_of.get(key, spelled.get(label_identity(key), others))

        sign: dict[Any, Any] = {
            value: sign_of(label_key(value)) for value in set(values)
        }
        if None in sign.values():
            unknown = {value for value, side in sign.items() if side is None}
            self._refuse_unknown(y, min(values.index(value) for value in unknown))
        return np.fromiter(map(sign.__getitem__, values), np.int8, len(values))

    def _refuse_unknown(self, y: NDArray[Any], row: int) -> None:
        if label_key(y[row]) is None:
            raise LabelError("the label is missing.", row)
        raise LabelError(
            f"unknown label {shown_label(y[row])}; the task is {self}; {_remedy()}.",
            row,
        )


def _labels(y: ArrayLike | None) -> NDArray[Any]:
    """Return labels as float64 or as objects."""
    if y is None:
        raise ValueError("The data have no labels.")
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"Labels must be one-dimensional, not of shape {y.shape}.")
    if y.dtype.kind in "biuf":
        return y.astype(np.float64, copy=False)
    if y.dtype.kind in "OUT":
        return y
    raise ValueError(f"Labels must be numbers or text, not {y.dtype}.")


def _counts(y: NDArray[Any]) -> dict[Label, int]:
    """Return the number of rows of each label, numbers first, in sorted order."""
    if y.dtype.kind == "f":
        _refuse_missing(y)
        labels, counts = np.unique(y, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))
    rows: Counter[Label] = Counter()
    for value, count in Counter(y.tolist()).items():
        key = label_key(value)
        if key is None:
            raise LabelError("the label is missing.", y.tolist().index(value))
        rows[key] += count
    return {label: rows[label] for label in sorted(rows, key=label_order)}


def _merged(rows: Mapping[Label, int]) -> dict[Label, int]:
    """Return the rows with spellings of one label as the most frequent of them."""
    spellings: dict[Label, list[Label]] = {}
    for label in rows:
        spellings.setdefault(label_identity(label), []).append(label)
    return {
        max(labels, key=lambda label: rows[label]): sum(rows[label] for label in labels)
        for labels in spellings.values()
    }


def _guess(rows: Mapping[Label, int]) -> "Task":
    """Return the task that labels with so many rows suggest."""
    seen = sorted(rows, key=label_order, reverse=True)  # of equal counts, the larger
    if len(seen) == 2 and type(seen[0]) is type(seen[1]):
        high = _higher(*seen)
        if high is None:
            high = min(seen, key=lambda label: rows[label])
        (low,) = (label for label in seen if label != high)
        return Task((high,), (low,))
    if len(seen) > 1:
        raise ValueError(
            f"There are {len(seen)} labels: {listed_labels(seen)}; {_remedy()}."
        )
    if seen == [1.0]:  # is it -1/+1 or 0/1? The data will show.
        return Task((1.0,), (-1.0, 0.0), coded=True)
    for spelling in (seen[0], label_identity(seen[0])):
        for low, high in _codings():
            if spelling in (low, high):
                return Task((high,), (low,))
    raise ValueError(
        f"All labels of the first rows are {shown_label(seen[0])}, which may be the "
        f"positive class or the negative one; {_remedy()}."
    )


def _higher(first: Label, second: Label) -> Label | None:
    """Return the positive one of two labels by its meaning, if known."""
    if isinstance(first, str) and isinstance(second, str):
        return higher(first, second)
    if isinstance(first, str) or isinstance(second, str):
        return None
    low, high = sorted((first, second))
    return high if low <= 0.0 < high else None


def _refuse_missing(y: NDArray[Any]) -> None:
    missing = np.isnan(y)
    if missing.any():
        row = int(np.argmax(missing))
        raise LabelError("the label is missing.", row)


def _codings() -> Iterable[tuple[Label, Label]]:
    yield from _NUMBERS
    for low, high in _WORDS:
        for spelling in _SPELLINGS:
            yield spelling(low), spelling(high)


def _group(labels: Label | Sequence[Label] | None) -> tuple[Label, ...]:
    """Return the keys of labels given by the user, without duplicates."""
    if labels is None:
        return ()
    if isinstance(labels, str):
        words = next(csv.reader([labels], skipinitialspace=True), [])
        labels = [word for word in words if word.strip()]
    elif not isinstance(labels, Iterable):
        labels = [labels]
    keys = [label_key(label) for label in labels]
    if None in keys:
        raise ValueError(f"A label is missing in {labels!r}.")
    return tuple(dict.fromkeys(key for key in keys if key is not None))


def _remedy() -> str:
    return "set the positive labels: positive=LABELS"
