"""``python -m aucmax_reproduction SOURCE``: run the tables of a paper."""

from pathlib import Path
from typing import Annotated

import typer

from aucmax.cli.errors import errors_in_one_line
from aucmax_reproduction.command import names, pictures_of, run, show_plan
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.reproduce import Wanted

_Names = Annotated[
    str, typer.Option(metavar="A,B", help="Names, separated by commas (default: all).")
]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(
    epilog="Example: python -m aucmax_reproduction gao2013-opauc --table 2 "
    "--datasets diabetes,german --runs 5",
)
def main(
    source: Annotated[
        str,
        typer.Argument(
            help="gao2013-opauc, khalid2019-dissertation, liu2018-fsauc, "
            "natole2018-spam or natole2020-thesis.",
            metavar="SOURCE",
            show_default=False,
        ),
    ],
    table: _Names = "",
    datasets: _Names = "",
    algorithms: _Names = "",
    forms: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Forms: printed (as published), ours (defaults), tuned."
        ),
    ] = "ours,printed",
    runs: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Runs per cell (0: as in the paper)."),
    ] = 0,
    grid: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Maximum values per parameter (0: all)."),
    ] = 5,
    tune_rows: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Maximum rows used for tuning (0: all)."),
    ] = 3000,
    rows: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum training rows (0: all).")
    ] = 20_000,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Read a set of the paper from your file, svmlight or CSV with a "
            "column 'label' (repeatable; a second file of a set is its test file).",
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Search class groups that the paper omits."),
    ] = False,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw the paper's figures too.")
    ] = False,
    figure: Annotated[
        str,
        typer.Option(metavar="A,B", help="Draw these figures only, by number."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the fits and stop.")
    ] = False,
    no_fits: Annotated[
        bool,
        typer.Option("--no-fits", help="Make tables from existing fits."),
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of processes.")
    ] = 2,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed.")] = 0,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            file_okay=False,
            help="Folder for fits and tables; rerun to resume.",
        ),
    ] = Path("aucmax-reproduction"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from.")
    ] = False,
) -> None:
    """Run the tables of a paper and compare with the published values."""
    with errors_in_one_line(debug):
        wanted = Wanted(
            source=source,
            tables=names(table),
            datasets=names(datasets),
            algorithms=names(algorithms),
            forms=names(forms),
            runs=runs or None,
            search=search,
            data=tuple(data or ()),
        )
        effort = Effort(grid or None, tune_rows or None, rows or None, seed)
        if dry_run:
            show_plan(wanted, effort, as_json)
            return
        pictures = pictures_of(source, names(figure)) if figures or figure else []
        how = {"fits": not no_fits, "as_json": as_json}
        code = run(wanted, effort, output, jobs, pictures, **how)
        if code:
            raise typer.Exit(code)


if __name__ == "__main__":
    app(prog_name="python -m aucmax_reproduction")
