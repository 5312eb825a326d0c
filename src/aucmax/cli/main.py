"""The command ``aucmax``: what can be asked for, and nothing that is slow to import.

A verb's own file is imported when the verb is used, so that ``aucmax --help`` answers
at once.
"""

import errno
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from aucmax import __version__

_INTERRUPTED = 130  # what shells report for a process ended by Ctrl-C


class _Commands(TyperGroup):
    """Turns what is no fault of the program into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        debug = ctx.params["debug"] or os.environ.get("AUCMAX_DEBUG", "0") != "0"
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            if debug:
                raise
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(_INTERRUPTED) from None
        except (OSError, ValueError, ImportError, MemoryError) as error:
            if debug or _is(error, errno.EPIPE):  # a closed pipe: typer ends quietly
                raise
            typer.echo(f"Error: {_in_words(error)}", err=True)
            raise typer.Exit(1) from None


def _is(error: Exception, number: int) -> bool:
    return isinstance(error, OSError) and error.errno == number


def _in_words(error: Exception) -> str:
    """Return what is wrong in one line, the file first if there is one."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    words = " ".join(str(error).split()) or type(error).__name__
    if _is_ours(error):
        return words
    return f"{words} (aucmax --debug … shows where this comes from)"


def _is_ours(error: Exception) -> bool:
    """Return whether the package itself raised it, with words meant for people."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    source = trace.tb_frame.f_code.co_filename if trace is not None else ""
    return Path(source).is_relative_to(Path(__file__).parents[1])


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
