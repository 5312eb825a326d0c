"""The command ``aucmax``: all commands and their options.

This module imports nothing slow, so that ``aucmax --help`` answers at once. A command
imports its implementation, ``run`` in the file of its name, when it is called.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aucmax import __version__
from aucmax.cli import options as opt
from aucmax.cli.errors import errors_in_one_line, occupy_closed_streams
from aucmax.cli.options import flag, option, reader_options
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
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is three times as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aucmax {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, flag("--version", "Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, flag("--debug", "Show tracebacks of errors (also AUCMAX_DEBUG=1).")
    ] = False,
) -> None:
    """Accept the options that come before the command."""


@app.command(
    epilog="Example: aucmax train day1.csv day2.csv.gz -o clicks.aucmax "
    "--label clicked --holdout 0.1",
)
def train(
    data: opt.Data,
    output: Annotated[
        Path,
        option("MODEL", "Model file to write.", "--output", "-o", dir_okay=False),
    ],
    algorithm: Annotated[
        str,
        option(
            "NAME",
            "SPAM, BAM, NPSAM, … (see aucmax algorithms); auto chooses by data size.",
        ),
    ] = "auto",
    fast: Annotated[
        bool, flag("--fast", "Train one linear model, not a blend of models.")
    ] = False,
    param: Annotated[
        list[str] | None,
        option("KEY=VALUE", "Set an estimator parameter (repeatable)."),
    ] = None,
    passes: Annotated[int | None, option("N", "Passes over the data.", min=1)] = None,
    seed: opt.Seed = 0,
    label: opt.Label = None,
    positive: opt.Positive = None,
    missing: opt.Missing = None,
    reader: Annotated[
        list[str] | None,
        option(
            "KEY=VALUE",
            "Reader option: format, dtype, drop, only, weight, categorical, text, "
            "numeric, date, encode=auto|hash|onehot, hash_size, delimiter, decimal, "
            "na, header, zero_based.",
            "--input",
        ),
    ] = None,
    holdout: Annotated[
        float,
        option("SHARE", "Fraction of rows held out for evaluation.", min=0.0, max=0.9),
    ] = 0.0,
    test: Annotated[
        list[str] | None, option("DATA", "Test data to evaluate on.")
    ] = None,
    on_bad_line: opt.OnBadLine = "fail",
    quarantine: opt.Quarantine = None,
    checkpoint_rows: Annotated[
        int | None, option("N", "Write a checkpoint every N rows …", min=1)
    ] = None,
    checkpoint_seconds: Annotated[
        float, option("S", "… or every S seconds.", min=0.0)
    ] = 30.0,
    resume: Annotated[
        bool, flag("--resume", "Resume from the checkpoint of an interrupted run.")
    ] = False,
    cluster: Annotated[
        str | None,
        option(
            "WHERE", "Train on Dask: tcp://HOST:PORT of a scheduler, or local:WORKERS."
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Train a ranker and write it to a model file."""
    import_scikit_learn()
    from aucmax.cli.train import run, run_on_cluster
    from aucmax.workflows.train import FAST, Plan

    if fast and algorithm != "auto":
        raise typer.BadParameter("--fast and --algorithm exclude each other: take one.")
    plan = Plan(
        data=data,
        algorithm=FAST if fast else algorithm,
        params=opt.parameters(param, "--param"),
        passes=passes,
        seed=seed,
        holdout=holdout,
        positive=positive,
        reader=reader_options(reader, label=label, missing=missing),
        on_bad_line=opt.bad_line_policy(on_bad_line, quarantine),
    )
    if cluster is not None:
        local_only = {
            "--passes": passes,
            "--holdout": holdout,
            "--test": test,
            "--quarantine": quarantine,
            "--checkpoint-rows": checkpoint_rows,
            "--resume": resume,
            "--on-bad-line": on_bad_line != "fail",
        }
        for name, value in local_only.items():
            if value:
                raise typer.BadParameter(f"{name} does not work with --cluster.")
        run_on_cluster(plan, output, cluster, as_json)
        return
    code = run(
        plan,
        output,
        as_json,
        test=test or (),
        quarantine=quarantine,
        checkpoint_rows=checkpoint_rows,
        checkpoint_seconds=checkpoint_seconds,
        resume=resume,
    )
    if code:
        raise typer.Exit(code)


@app.command(
    epilog="Example: aucmax evaluate clicks.aucmax today.csv --at 100,0.01 --by city",
)
def evaluate(
    model: opt.Model,
    data: opt.Data,
    label: Annotated[
        str | None, option("COLUMN", "Label column (default: as in training).")
    ] = None,
    positive: Annotated[
        str | None,
        option("LABELS", "Positive labels, as for train (default: as in training)."),
    ] = None,
    weight: Annotated[
        str | None,
        option("COLUMN", "Column of row weights, or 'none' (default: as in training)."),
    ] = None,
    missing: opt.Missing = None,
    reader: opt.ModelInput = None,
    at: Annotated[
        str | None,
        option(
            "K,K,…",
            "Report precision and lift of the top K: rows (100) or a share (0.01, 1%).",
            show_default=False,
        ),
    ] = None,
    max_fpr: Annotated[
        float, option("RATE", "Largest false positive rate of the partial AUC.")
    ] = 0.1,
    by: Annotated[
        str | None, option("COLUMN", "Report the AUC for each value of a column.")
    ] = None,
    level: Annotated[float, option("SHARE", "Confidence level.")] = 0.95,
    plot: Annotated[
        Path | None, option("FILE", "Plot the ROC curve: .png, .svg or .pdf.")
    ] = None,
    on_bad_line: opt.OnBadLine = "fail",
    quarantine: opt.Quarantine = None,
    as_json: opt.Json = False,
) -> None:
    """Evaluate a model on labelled data.

    Reports AUC with its confidence interval (DeLong), partial AUC, precision and lift
    of the top of the ranking (Wilson intervals), and operating points. With weights, K
    is a sum of weights; for confidence intervals each row is one observation.
    """
    import_scikit_learn()
    from aucmax.cli.evaluate import run

    run(
        model,
        data,
        reader_options(reader, label=label, missing=missing),
        opt.bad_line_policy(on_bad_line, quarantine),
        quarantine,
        plot,
        as_json,
        positive=positive,
        weight=weight,
        by=by,
        at=at,
        max_fpr=max_fpr,
        level=level,
    )


@app.command(
    epilog="Example: aucmax score clicks.aucmax today.csv.gz -o today-scored.csv",
)
def score(
    model: opt.Model,
    data: opt.Data,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "Output file, compressed if it ends in .gz, .bz2, .xz or .zst.",
            "--output",
            "-o",
        ),
    ] = None,
    missing: opt.Missing = None,
    reader: opt.ModelInput = None,
    on_bad_line: opt.OnBadLine = "fail",
    quarantine: opt.Quarantine = None,
    as_json: opt.Json = False,
) -> None:
    """Append a column of scores to data.

    CSV rows are copied unchanged, with a last column "score" ("score_2" if that name is
    taken). svmlight data give one score per line. Parquet data give Parquet if the
    output file's name says so, otherwise CSV. Labels are not needed. The output file
    appears when it is complete.
    """
    import_scikit_learn()
    from aucmax.cli.score import run

    changes = reader_options(reader, missing=missing)
    policy = opt.bad_line_policy(on_bad_line, quarantine)
    run(model, data, output, changes, policy, quarantine, as_json)


@app.command(
    epilog="Example: aucmax compare german --algorithm SPAM --algorithm lightgbm "
    "--repeats 3 -o folds.csv",
)
def compare(
    data: opt.Data,
    algorithm: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Algorithm to compare (repeatable): an estimator of aucmax, "
            "balanced-logistic or lightgbm.",
            show_default="SPAM, LeastSquaresAUCCV, BAMCV, balanced-logistic",
        ),
    ] = None,
    folds: Annotated[int, option("N", "Number of folds.", min=2)] = 5,
    repeats: Annotated[
        int, option("N", "Repetitions of the cross-validation.", min=1)
    ] = 1,
    seed: opt.Seed = 0,
    label: opt.Label = None,
    positive: opt.Positive = None,
    missing: opt.Missing = None,
    reader: Annotated[
        list[str] | None, option("KEY=VALUE", "Reader option, as for train.", "--input")
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "Write the AUC of every fold as CSV.",
            "-o",
            "--output",
            dir_okay=False,
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Compare algorithms by cross-validation on the same folds."""
    from aucmax.cli.compare import run
    from aucmax.workflows.compare import DEFAULT

    reading = reader_options(reader, label=label, missing=missing)
    code = run(
        data,
        algorithm or DEFAULT,
        positive,
        reading,
        output,
        as_json,
        folds=folds,
        repeats=repeats,
        seed=seed,
    )
    if code:
        raise typer.Exit(code)


@app.command(epilog="Example: aucmax info clicks.aucmax")
def info(model: opt.Model, as_json: opt.Json = False) -> None:
    """Describe a model file.

    Shows its class and parameters, the training data, its AUC and the largest weights.
    """
    from aucmax.cli.info import run

    run(model, as_json)


@app.command(epilog="Example: aucmax export clicks.aucmax -o clicks.json")
def export(
    model: opt.Model,
    output: Annotated[
        Path | None, option("FILE", "Output file.", "--output", "-o")
    ] = None,
    form: Annotated[
        str | None,
        option("NAME", "json or onnx (default: by file name, or json).", "--format"),
    ] = None,
    as_json: Annotated[
        bool, flag("--json", "Print a summary of the output file as JSON.")
    ] = False,
) -> None:
    """Export a model as JSON or ONNX.

    JSON has the weights by feature name: score = intercept + sum of weight · value.
    ONNX has a graph from X (double, one row per example) to score; it needs pip install
    'aucmax[onnx]'.
    """
    from aucmax.cli.export import run

    run(model, output, form, as_json)


@app.command()
def algorithms(as_json: opt.Json = False) -> None:
    """List the algorithms from the literature, by name."""
    from aucmax.cli.algorithms import run

    run(as_json)


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Describe this data set.")
    ] = None,
    fetch: Annotated[
        bool, flag("--fetch", "Download the data set if it is not available locally.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """List the public data sets known by name."""
    from aucmax.cli.datasets import run

    if fetch and name is None:
        raise typer.BadParameter("--fetch needs the name of a set.", param_hint="NAME")
    run(name, fetch, as_json)


@app.command(epilog="Example: aucmax warmup AUCStream")
def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Algorithms to compile (default: all)."),
    ] = None,
    jobs: opt.Jobs = 2,
    as_json: opt.Json = False,
) -> None:
    """Compile kernels ahead of time."""
    from aucmax.cli.warmup import run

    run(names or [], jobs, as_json)


@app.command()
def demo(
    output: Annotated[
        Path,
        option(
            "FOLDER",
            "Folder for the model file and the figure.",
            file_okay=False,
            writable=True,
        ),
    ] = Path("aucmax-demo"),
    rows: Annotated[
        int, option("N", "Rows of the generated stream.", min=1000)
    ] = 1_000_000,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Compare AUCClassifier and AUCStream with baselines."""
    from aucmax.cli.demo import run

    run(output, rows, seed, as_json)


@app.command(
    hidden=True,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def reproduce() -> None:
    """Tell users of version 0.1 where this command is now."""
    raise ValueError(
        "The papers' tables are now in a separate package. From a clone: pip install "
        "./reproduction, then python -m aucmax_reproduction SOURCE with the same "
        "options."
    )
