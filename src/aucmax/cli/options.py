"""Options that several commands share, and the parsing of KEY=VALUE settings."""

import json
from collections.abc import Sequence
from typing import Any

import typer

# Reader options whose values are lists, separated by commas.
_LISTS = {"drop", "only", "categorical", "text", "numeric", "date", "na"}


def option(default: Any, metavar: str, text: str, *names: str, **rules: Any) -> Any:
    """Return a typer option with a metavar and a help text."""
    return typer.Option(default, *names, metavar=metavar, help=text, **rules)


def flag(name: str, text: str, **rules: Any) -> Any:
    """Return a typer option that takes no value."""
    return typer.Option(False, name, help=text, **rules)


def _policy(action: str) -> str:
    if action not in ("fail", "skip"):
        raise typer.BadParameter(f"{action!r} is not fail or skip.")
    return action


MODEL = typer.Argument(metavar="MODEL", help="Model file.", show_default=False)
DATA = typer.Argument(
    metavar="DATA",
    help="Files, folders, globs, or - for standard input.",
    show_default=False,
)
JSON = flag("--json", "Print the results as JSON.")
ON_BAD_LINE = typer.Option(
    "fail",
    metavar="ACTION",
    help="What to do with malformed lines: fail or skip.",
    callback=_policy,
)
SEED = option(0, "N", "Random seed.", min=0)
LABEL = option(None, "COLUMN", "Label column (name or 0-based index).")
POSITIVE = option(
    None, "LABELS", "Labels to rank high, separated by commas; or '>3', or @half."
)
# A model fixes how features are built; few options of its data can be set.
MODEL_INPUT = option([], "KEY=VALUE", "Reader option, e.g. 'delimiter=;'", "--input")


def parameters(settings: Sequence[str], name: str) -> dict[str, Any]:
    """Parse KEY=VALUE settings of the option ``name``; values are JSON or text."""
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ValueError(f"{name} {setting}: expected KEY=VALUE.")
        if key in found:
            raise ValueError(f"{name} {key} is given twice.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def reader_options(settings: Sequence[str], **flags: Any) -> dict[str, Any]:
    """Return the options of a reader, from --input settings and other options."""
    from aucmax.io.open_data import OURS

    options = parameters(settings, "--input")
    if internal := OURS & options.keys():
        raise ValueError(f"--input {min(internal)}: there is no such option.")
    for setting in settings:  # lists are text: a column may be named true or 007
        name, _, value = setting.partition("=")
        if name in _LISTS and not isinstance(options[name], list):
            options[name] = value.split(",")
    given = {name: value for name, value in flags.items() if value is not None}
    if twice := given.keys() & options.keys():
        raise ValueError(f"{min(twice)} is given twice.")
    return options | given
