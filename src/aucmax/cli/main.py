"""The command ``aucmax``: what can be asked for, and nothing that is slow to import.

A verb's own file is imported when the verb is used, so that ``aucmax --help`` answers
at once.
"""

import errno
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aucmax import __version__

_INTERRUPTED = 130  # what shells report for a process ended by Ctrl-C


class _Commands(TyperGroup):
    """Turns what is no fault of the program into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has gone: typer ends quietly
                raise
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Commands,
    help="Train rankers that maximise AUC.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is three times as fast
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
) -> None:
    """Take the options that come before the verb."""


@app.command()
def demo(
    output: Annotated[
        Path,
        typer.Option(
            file_okay=False, writable=True, help="Folder for the model and the picture."
        ),
    ] = Path("aucmax-demo"),
    rows: Annotated[
        int, typer.Option(min=1000, help="Rows of the generated stream.")
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as JSON.")
    ] = False,
) -> None:
    """Train on a real set and on a stream with rare positives; compare, save, draw."""
    from aucmax.cli.demo import run

    run(output, rows, seed, as_json)


@app.command()
def warmup() -> None:
    """Compile all kernels now, so that nothing has to wait for it later."""
    from aucmax.cli.warmup import run

    run()
