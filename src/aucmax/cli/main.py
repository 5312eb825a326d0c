"""The command ``aucmax``: what can be asked for, and nothing that is slow to import.

A verb's own file is imported when the verb is used, so that ``aucmax --help`` answers
at once.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aucmax import __version__
from aucmax.cli.errors import errors_in_one_line, occupy_closed_streams
from aucmax.cli.lean import import_scikit_learn


class _Commands(TyperGroup):
    """Commands whose errors are told in one line."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command, whatever standard streams there are."""
        occupy_closed_streams()
        return super().main(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with errors_in_one_line(ctx.params["debug"]):
            return super().invoke(ctx)


def _bad_line_policy(policy: str, quarantine: Path | None) -> str:
    if policy not in ("fail", "skip"):
        raise typer.BadParameter(
            f"{policy!r} is not fail or skip. To keep such lines: --quarantine FILE.",
            param_hint="--on-bad-line",
        )
    return policy if quarantine is None else "quarantine"


app = typer.Typer(
    cls=_Commands,
    help="Train rankers that maximise AUC.",
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
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where errors come from (AUCMAX_DEBUG=1)."),
    ] = False,
) -> None:
    """Take the options that come before the verb."""


_Model = Annotated[
    Path, typer.Argument(help="A model file.", metavar="MODEL", show_default=False)
]
_Data = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, globs, - for a pipe, or a set (aucmax datasets).",
        metavar="DATA",
        show_default=False,
    ),
]
_Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Processes.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]


_OnBadLine = Annotated[
    str,
    typer.Option(metavar="WHAT", help="Lines that are no rows: fail, or skip them."),
]
_Quarantine = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Keep them in a file instead."),
]
_Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of all that is random.")]
_Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Where the labels are: its name, or place from 0."
    ),
]
_Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABELS", help="Those to rank high, with commas; or >3, or @half."
    ),
]
_Missing = Annotated[
    str | None,
    typer.Option(metavar="WHAT", help="Missing values: auto, error, impute or zero."),
]


_Names = Annotated[
    str,
    typer.Option(metavar="A,B", help="Only these, with commas.", show_default=False),
]
_Changed = Annotated[
    list[str],
    typer.Option("--input", metavar="KEY=VALUE", help="Of these data: delimiter=SIGN."),
]


@app.command()
def demo(
    output: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            file_okay=False,
            writable=True,
            help="For the model and the picture.",
        ),
    ] = Path("aucmax-demo"),
    rows: Annotated[
        int,
        typer.Option(metavar="N", min=1000, help="Rows of the generated stream."),
    ] = 1_000_000,
    seed: _Seed = 0,
    as_json: _Json = False,
) -> None:
    """Show what it can do, on a table and on a stream; compare, save, draw."""
    from aucmax.cli.demo import run

    run(output, rows, seed, as_json)


@app.command()
def algorithms(as_json: _Json = False) -> None:
    """List the systems of the literature that there are names for."""
    from aucmax.cli.algorithms import run

    run(as_json)


@app.command(epilog="Example: aucmax warmup AUCStream")
def warmup(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Algorithms that you use; all if none is named."
        ),
    ] = None,
    jobs: _Jobs = 2,
    as_json: _Json = False,
) -> None:
    """Compile kernels now, so that nothing has to wait for it later."""
    from aucmax.cli.warmup import run

    run(names or [], jobs, as_json)


@app.command(
    epilog="Example: aucmax train day1.csv day2.csv.gz -o clicks.aucmax "
    "--label clicked --holdout 0.1",
)
def train(
    data: _Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model file.", dir_okay=False
        ),
    ],
    algorithm: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="SPAM, BAM, NPSAM, … (see aucmax algorithms); auto goes by the size.",
        ),
    ] = "auto",
    fast: Annotated[
        bool, typer.Option("--fast", help="A single linear model, not a blend.")
    ] = False,
    param: Annotated[
        list[str], typer.Option(metavar="KEY=VALUE", help="A parameter of it.")
    ] = [],  # noqa: B006
    passes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Passes over the data.")
    ] = None,
    seed: _Seed = 0,
    label: _Label = None,
    positive: _Positive = None,
    missing: _Missing = None,
    reader: Annotated[
        list[str],
        typer.Option(
            "--input",
            metavar="KEY=VALUE",
            help="Of the reader: format, dtype, drop, only, weight, categorical, "
            "text, numeric, date, encode=auto|hash|onehot, hash_size, delimiter, "
            "decimal, na, header, zero_based.",
        ),
    ] = [],  # noqa: B006
    holdout: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0.0, max=0.9, help="Rows to judge by, not to learn."
        ),
    ] = 0.0,
    test: Annotated[
        list[str], typer.Option(help="Or data to judge by.", metavar="DATA")
    ] = [],  # noqa: B006
    on_bad_line: _OnBadLine = "fail",
    quarantine: _Quarantine = None,
    checkpoint_rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Keep what is learnt every N rows …"),
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(metavar="S", min=0.0, help="… or every S seconds.")
    ] = 30.0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on after a crash or Ctrl-C.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Train on Dask: tcp://HOST:PORT of a scheduler, or local:N workers.",
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Train a ranker from data, and write it to a model file."""
    import_scikit_learn()
    from aucmax.cli.train import parameters, reader_options, run
    from aucmax.workflows.choose import FAST
    from aucmax.workflows.plan import Plan

    if fast and algorithm != "auto":
        raise typer.BadParameter("--fast and --algorithm: take one.")
    plan = Plan(
        data=data,
        algorithm=FAST if fast else algorithm,
        params=parameters(param, "--param"),
        passes=passes,
        seed=seed,
        holdout=holdout,
        positive=positive,
        reader=reader_options(reader, label=label, missing=missing),
        on_bad_line=_bad_line_policy(on_bad_line, quarantine),
    )
    if cluster is not None:
        from aucmax.cli.train import run_on_cluster

        settings = {
            "--passes": passes,
            "--holdout": holdout,
            "--test": test,
            "--quarantine": quarantine,
            "--checkpoint-rows": checkpoint_rows,
            "--resume": resume,
            "--on-bad-line": on_bad_line != "fail",
        }
        for name, value in settings.items():
            if value:
                raise typer.BadParameter(f"{name} is not for --cluster.")
        run_on_cluster(plan, output, cluster, as_json)
        return
    code = run(
        plan,
        output,
        test=test,
        quarantine=quarantine,
        checkpoint_rows=checkpoint_rows,
        checkpoint_seconds=checkpoint_seconds,
        resume=resume,
        as_json=as_json,
    )
    if code:
        raise typer.Exit(code)


@app.command(
    epilog="Example: aucmax score clicks.aucmax today.csv.gz -o today-scored.csv",
)
def score(
    model: _Model,
    data: _Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the scores, packed if it ends in .gz etc.",
        ),
    ] = None,
    missing: _Missing = None,
    reader: _Changed = [],  # noqa: B006
    on_bad_line: _OnBadLine = "fail",
    quarantine: _Quarantine = None,
    as_json: _Json = False,
) -> None:
    """Score data: print the rows, in their order, with a column more.

    CSV stays as it is, with a column "score" at the end ("score_2" if there is one).
    svmlight data give one score a line. Parquet gives Parquet if the file's name ends
    so, else CSV. Labels are not needed. The file appears when it is complete.
    """
    import_scikit_learn()
    from aucmax.cli.score import run
    from aucmax.cli.train import reader_options

    options = reader_options(reader, missing=missing)
    policy = _bad_line_policy(on_bad_line, quarantine)
    run(model, data, output, options, policy, quarantine, as_json)


@app.command(
    epilog="Example: aucmax evaluate clicks.aucmax today.csv --at 100,0.01 --by city",
)
def evaluate(
    model: _Model,
    data: _Data,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of the labels; else as in training."),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Those that should rank high, as for train; else as in training.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Weights of rows; none for none; else as in training.",
        ),
    ] = None,
    missing: _Missing = None,
    reader: _Changed = [],  # noqa: B006
    at: Annotated[
        str | None,
        typer.Option(
            metavar="K,K,…",
            help="Lengths of lists: rows, as 100, or shares, as 0.01 or 1%.",
            show_default=False,
        ),
    ] = None,
    max_fpr: Annotated[
        float,
        typer.Option(
            metavar="RATE", help="False positive rate up to which AUC is taken, too."
        ),
    ] = 0.1,
    by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="AUC for each of its values.")
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the intervals.")
    ] = 0.95,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the ROC curve: .png, .svg or .pdf."),
    ] = None,
    on_bad_line: _OnBadLine = "fail",
    quarantine: _Quarantine = None,
    as_json: _Json = False,
) -> None:
    """Judge a model by data with labels.

    AUC with its interval (DeLong), partial AUC, precision and lift of the top of the
    ranking (Wilson's intervals), and what thresholds would do. With weights, lengths
    of lists are sums of weights, and to the intervals a row is one observation
    whatever its weight.
    """
    import_scikit_learn()
    from aucmax.cli.evaluate import run
    from aucmax.cli.train import reader_options

    run(
        model,
        data,
        positive=positive,
        weight=weight,
        options=reader_options(reader, label=label, missing=missing),
        at=at,
        max_fpr=max_fpr,
        by=by,
        level=level,
        plot=plot,
        on_bad_line=_bad_line_policy(on_bad_line, quarantine),
        quarantine=quarantine,
        as_json=as_json,
    )


@app.command(epilog="Example: aucmax info clicks.aucmax")
def info(model: _Model, as_json: _Json = False) -> None:
    """Say what is in a model file.

    Its class and parameters, what it was trained on, the largest weights.
    """
    from aucmax.cli.info import run

    run(model, as_json)


@app.command(epilog="Example: aucmax export clicks.aucmax -o clicks.json")
def export(
    model: _Model,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="File to write."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="json or onnx; by the file's name, or json.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
) -> None:
    """Write a model for other programs.

    JSON has the weights by name, so that score = intercept + the sum of weight · value.
    ONNX has a graph from X (doubles, a row each) to score; it needs aucmax[onnx].
    """
    from aucmax.cli.export import run

    run(model, output, form, as_json)


@app.command()
def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A set: all that is known of it."),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download it, if it is not here.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """List the named data sets: what they are, and whether they are here."""
    from aucmax.cli.datasets import run

    if fetch and name is None:
        raise typer.BadParameter("which set is to be fetched?", param_hint="NAME")
    run(name, fetch, as_json)


@app.command(
    epilog="Example: aucmax compare german --algorithm SPAM --algorithm lightgbm "
    "--repeats 3 -o folds.csv",
)
def compare(
    data: _Data,
    algorithm: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Take this one, and others given so: an estimator of aucmax, "
            "balanced-logistic or lightgbm.",
            show_default="SPAM, LeastSquaresAUCCV, BAMCV, balanced-logistic",
        ),
    ] = [],  # noqa: B006
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Parts of the data.")
    ] = 5,
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="Partitions of the data.")
    ] = 1,
    seed: _Seed = 0,
    label: _Label = None,
    positive: _Positive = None,
    missing: _Missing = None,
    reader: Annotated[
        list[str],
        typer.Option(
            "--input", metavar="KEY=VALUE", help="Of the reader, as for train."
        ),
    ] = [],  # noqa: B006
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", dir_okay=False, help="Every fold, as CSV."
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Compare algorithms on the same folds of the data."""
    from aucmax.cli.compare import run
    from aucmax.cli.train import reader_options

    code = run(
        data,
        algorithm,
        positive=positive,
        options=reader_options(reader, label=label, missing=missing),
        folds=folds,
        repeats=repeats,
        seed=seed,
        output=output,
        as_json=as_json,
    )
    if code:
        raise typer.Exit(code)


@app.command(
    hidden=True,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def reproduce() -> None:
    """Say where the reproduction of the papers is now."""
    raise ValueError(
        "The papers' tables are run by a package of their own. From a clone: "
        "pip install ./reproduction, then python -m aucmax_reproduction SOURCE, with "
        "the same options."
    )
