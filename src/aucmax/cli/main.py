"""The command ``aucmax``: all commands and their options.

This module imports nothing slow, so that ``aucmax --help`` answers at once. A command
imports its implementation, ``run`` in the file of its name, when it is called.
"""
# ruff: noqa: B008 (typer's options are default values)

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from aucmax import ESTIMATORS, __version__
from aucmax.cli import options as opt
from aucmax.cli.errors import errors_in_one_line, occupy_closed_streams
from aucmax.cli.options import flag, option, parameters, reader_options
from aucmax.cli.startup import import_scikit_learn


class _Commands(TyperGroup):
    """Commands that report errors in one line."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command, even if standard streams are closed."""
        occupy_closed_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with errors_in_one_line(ctx.params["debug"]):
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    help="Train and apply rankers that maximise AUC.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is three times as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aucmax {__version__}")
        raise typer.Exit


def _algorithms(incomplete: str) -> list[str]:
    """Complete the name of an estimator in a shell."""
    return [name for name in ESTIMATORS if name.startswith(incomplete)]


@app.callback()
def options(
    version: bool = flag(
        "--version", "Print the version.", callback=_version, is_eager=True
    ),
    debug: bool = flag("--debug", "Show tracebacks of errors (also AUCMAX_DEBUG=1)."),
) -> None:
    """Accept the options that come before the command."""


@app.command(
    epilog="Example: aucmax train day1.csv day2.csv.gz -o clicks.aucmax "
    "--label clicked --holdout 0.1",
)
def train(
    data: list[str] = opt.DATA,
    output: Path = option(
        ..., "MODEL", "Model file to write.", "--output", "-o", dir_okay=False
    ),
    algorithm: str = option(
        "auto",
        "NAME",
        "SPAM, BAM, NPSAM, … (see docs/algorithms.md); auto chooses by data size, and "
        "fast one linear model.",
        autocompletion=_algorithms,
    ),
    goal: str | None = option(
        None, "GOAL", "auc, recall@fpr=0.01, precision@k=100, …: sets the threshold."
    ),
    time: str | None = option(None, "COLUMN", "Dates: evaluate on later rows."),
    group: str | None = option(None, "COLUMN", "Groups of rows: never split one."),
    param: list[str] = option(
        [], "KEY=VALUE", "Set an estimator parameter (repeatable)."
    ),
    seed: int = opt.SEED,
    label: str | None = opt.LABEL,
    positive: str | None = opt.POSITIVE,
    reader: list[str] = option(
        [],
        "KEY=VALUE",
        "Reader option: format, dtype, drop, only, weight, categorical, text, numeric, "
        "date, missing=error|impute|zero, encode=auto|hash|onehot, hash_size, "
        "delimiter, decimal, na, header, "
        "zero_based.",
        "--input",
    ),
    holdout: float = option(
        0.0, "SHARE", "Fraction of rows held out for evaluation.", min=0.0, max=0.9
    ),
    test: list[str] = option([], "DATA", "Test data to evaluate on."),
    on_bad_line: str = opt.ON_BAD_LINE,
    checkpoint_seconds: float = option(
        30.0, "S", "Write a checkpoint every S seconds.", min=0.0
    ),
    start: Path | None = option(
        None,
        "MODEL",
        "Continue training this model with its parameters, features and labels.",
        "--from",
        exists=True,
        dir_okay=False,
    ),
    resume: bool = flag(
        "--resume", "Resume from the checkpoint of an interrupted run."
    ),
    as_json: bool = opt.JSON,
) -> None:
    """Train a ranker and write it to a model file."""
    import_scikit_learn()
    from aucmax.cli.train import run
    from aucmax.goals import parse as parse_goal
    from aucmax.workflows.plan import Plan

    params = parameters(param, "--param")
    if goal is not None:
        if algorithm not in ("auto", "AUCClassifier"):
            raise typer.BadParameter("--goal needs the default algorithm.")
        params["goal"] = str(parse_goal(goal))
        algorithm = "AUCClassifier"
    options = reader_options(reader, label=label)
    for name, column in (("time", time), ("group", group)):
        if column is not None:
            if algorithm not in ("auto", "AUCClassifier"):
                raise typer.BadParameter(f"--{name} needs the default algorithm.")
            params[name], algorithm = column, "AUCClassifier"
            options["extra"] = [*options.get("extra", ()), column]
    if group is not None:
        options["drop"] = [*options.get("drop", ()), group]
    plan = Plan(
        data=data,
        algorithm=algorithm,
        params=params,
        seed=seed,
        holdout=holdout,
        positive=positive,
        reader=options,
        on_bad_line=on_bad_line,
        start=None if start is None else str(start),
    )
    code = run(
        plan,
        output,
        as_json,
        test=test,
        checkpoint_seconds=checkpoint_seconds,
        resume=resume,
    )
    if code:
        raise typer.Exit(code)


@app.command(
    epilog="Example: aucmax evaluate clicks.aucmax today.csv --at 100,0.01 --by city",
)
def evaluate(
    model: Path = opt.MODEL,
    data: list[str] = opt.DATA,
    label: str | None = option(
        None, "COLUMN", "Label column (default: as in training)."
    ),
    positive: str | None = option(
        None, "LABELS", "Positive labels, as for train (default: as in training)."
    ),
    weight: str | None = option(
        None, "COLUMN", "Column of row weights, or 'none' (default: as in training)."
    ),
    reader: list[str] = opt.MODEL_INPUT,
    at: str | None = option(
        None,
        "K,K,…",
        "Report precision and lift of the top K: rows (100) or a share (0.01, 1%).",
        show_default=False,
    ),
    max_fpr: float = option(0.1, "RATE", "Largest FPR of the partial AUC."),
    by: str | None = option(
        None, "COLUMN", "Report AUC for each value, or each period, of a column."
    ),
    time: str | None = option(
        None, "COLUMN", "Column of dates, for AUC over time in the report."
    ),
    level: float = option(0.95, "SHARE", "Confidence level."),
    report: Path | None = option(
        None, "FILE", "Write an HTML report with a slider over all thresholds."
    ),
    on_bad_line: str = opt.ON_BAD_LINE,
    as_json: bool = opt.JSON,
) -> None:
    """Evaluate a model on labelled data.

    Reports AUC with its confidence interval (DeLong), partial AUC, precision and lift
    of the top of the ranking (Wilson intervals), and operating points. With weights, K
    is a sum of weights; for confidence intervals each row is one observation.
    """
    import_scikit_learn()
    from aucmax.cli.evaluate import run

    changes = reader_options(reader, label=label)
    if time is not None and report is None:
        raise typer.BadParameter("--time needs --report; --by prints AUC by period.")
    run(
        model,
        data,
        report,
        on_bad_line,
        changes,
        as_json,
        positive=positive,
        weight=weight,
        by=by,
        time=time,
        at=at,
        max_fpr=max_fpr,
        level=level,
    )


@app.command(
    epilog="Example: aucmax score clicks.aucmax today.csv.gz -o today-scored.csv",
)
def score(
    model: Path = opt.MODEL,
    data: list[str] = opt.DATA,
    output: Path | None = option(
        None,
        "FILE",
        "Output file, compressed if it ends in .gz, .bz2, .xz or .zst.",
        "--output",
        "-o",
    ),
    probability: bool = flag(
        "--probability", "Append the calibrated probability, too."
    ),
    top: int | None = option(
        None, "K", "Write only the K rows with the highest scores, best first.", min=1
    ),
    decide: bool = flag(
        "--decide", "Append the decision, 1 or 0, by the threshold of the model's goal."
    ),
    reasons: int = option(
        0,
        "N",
        "With --top: append the N columns that contribute most to each score.",
        min=0,
    ),
    reader: list[str] = opt.MODEL_INPUT,
    on_bad_line: str = opt.ON_BAD_LINE,
    as_json: bool = opt.JSON,
) -> None:
    """Append a column of scores to data.

    CSV rows are copied unchanged, with a last column "score" ("score_2" if that name is
    taken). svmlight data give one score per line. Parquet data give Parquet if the
    output file's name says so, otherwise CSV. Labels are not needed. The output file
    appears when it is complete.
    """
    import_scikit_learn()
    from aucmax.cli.score import run
    from aucmax.workflows.score import Output

    what = Output(top, probability, decide, reasons)
    changes = reader_options(reader)
    run(model, data, output, changes, on_bad_line, what, as_json)


@app.command(
    epilog="Example: aucmax compare clicks.csv --algorithm SPAM --algorithm lightgbm "
    "--repeats 3 -o folds.csv",
)
def compare(
    data: list[str] = opt.DATA,
    algorithm: list[str] = option(
        [],
        "NAME",
        "Algorithm to compare (repeatable): an estimator of aucmax, balanced-logistic "
        "or lightgbm.",
        show_default="SPAM, LeastSquaresAUCCV, BAMCV, balanced-logistic",
        autocompletion=_algorithms,
    ),
    folds: int = option(5, "N", "Number of folds.", min=2),
    repeats: int = option(1, "N", "Repetitions of the cross-validation.", min=1),
    seed: int = opt.SEED,
    goal: str = option("auc", "GOAL", "What to compare by, as for train."),
    label: str | None = opt.LABEL,
    positive: str | None = opt.POSITIVE,
    reader: list[str] = option(
        [], "KEY=VALUE", "Reader option, as for train.", "--input"
    ),
    output: Path | None = option(
        None,
        "FILE",
        "Write the AUC of every fold as CSV.",
        "--output",
        "-o",
        dir_okay=False,
    ),
    as_json: bool = opt.JSON,
) -> None:
    """Compare algorithms by cross-validation on the same folds."""
    from aucmax.cli.compare import run

    options = reader_options(reader, label=label)
    design = {"folds": folds, "repeats": repeats, "seed": seed, "goal": goal}
    if code := run(data, algorithm, positive, options, output, as_json, **design):
        raise typer.Exit(code)


@app.command(epilog="Example: aucmax info clicks.aucmax")
def info(model: Path = opt.MODEL, as_json: bool = opt.JSON) -> None:
    """Describe a model file.

    Shows its class and parameters, the training data, its AUC and the largest weights.
    """
    from aucmax.cli.info import run

    run(model, as_json)


@app.command()
def demo(
    output: Path = option(
        "aucmax-demo",
        "FOLDER",
        "Folder for the model file and the figure.",
        file_okay=False,
        writable=True,
    ),
    rows: int = option(300_000, "N", "Rows of the generated stream.", min=1000),
    seed: int = opt.SEED,
    as_json: bool = opt.JSON,
) -> None:
    """Compare AUCClassifier and AUCStream with baselines."""
    from aucmax.cli.demo import run

    run(output, rows, seed, as_json)
