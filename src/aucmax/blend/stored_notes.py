"""Results of a blend as JSON values of a model file, and its models."""

from math import isfinite, nan
from typing import Any, NamedTuple

from aucmax.base.ranker import Ranker
from aucmax.blend.combine import BlendLeaderboardEntry
from aucmax.blend.duplicates import DuplicateCounts
from aucmax.blend.importance import Importance
from aucmax.metrics._variance import Interval
from aucmax.metrics.auc import AUCInterval
from aucmax.storage.state import State, restore
from aucmax.tables.structure import Hint
from aucmax.thresholds import Promise, Threshold
from aucmax.thresholds import parse as parse_promise

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
