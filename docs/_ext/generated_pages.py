"""Write the pages that are made from other files, before Sphinx reads the sources.

- ``generated/commands.md`` from the command line itself;
- ``generated/api/*.rst`` from the public names of the package;
- the changelog, the contributor's guide and the reproduction from their files at the
  root of the repository, with links that work on the site.
"""

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent
ROOT = DOCS.parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
COPIES = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "reproduction.md": "reproduction/README.md",
}
STATISTICS = {
    "Area under the ROC curve": (
        "auc auc_interval cv_auc_interval auc_test auc_test_unpaired auc_variance "
        "multiclass_auc partial_auc partial_auc_interval"
    ),
    "ROC curve": "roc_curve roc_band roc_hull tpr_at fpr_at threshold_interval",
    "Top of the ranking": (
        "precision_at precision_interval lift_at lift_curve lift_area breakeven "
        "average_precision average_precision_interval"
    ),
    "Thresholds and decisions": (
        "operating_point confusion_at f_score best_f_score best_accuracy ks_statistic "
        "net_benefit cost_curve"
    ),
    "Calibration": ("brier_score calibration_curve calibration_line calibration_error"),
    "Groups, time and streams": (
        "auc_by_group cross_auc stability_index expected_auc StreamingAUC"
    ),
    "Planning a study": "auc_power auc_sample_size",
}
ESTIMATORS = {
    "For tables and streams": "AUCClassifier AUCStream",
    "Batch solvers": "BAM BAMCV LeastSquaresAUC LeastSquaresAUCCV SVMPerf MBA SPDAM",
    "Online learners": (
        "SPAM SOLAM FSAUC OPAUC AdaOAM OAM CBR UniExp SAM ASAM PSAM SVRGAUC"
    ),
    "Kernels and feature maps": (
        "KernelAUCCV KernelBAM Chain KMeansNystroem RandomFourier Projection"
    ),
    "Functions and values": "load named Moments",
}


def write(path: Path, text: str) -> None:
    """Write a file, unless it has the text already: Sphinx rebuilds what is newer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def commands() -> str:
    """Return the reference of all commands and options, as Markdown."""
    import click
    import typer

    from aucmax.cli.main import app

    group = typer.main.get_command(app)
    parts = [
        "# Commands and options\n",
        "This page is generated from the command line itself: `aucmax COMMAND -h`.\n",
    ]
    context = click.Context(group, info_name="aucmax")
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        pieces = command.collect_usage_pieces(inner)
        usage = " ".join(["aucmax", name, *pieces])
        parts += [f"## aucmax {name}\n", f"```text\n{usage}\n```\n"]
        parts += [command.help + "\n", "| option | meaning |\n|---|---|"]
        for parameter in command.get_params(inner):
            parts.append(option_row(parameter, inner))
        parts.append("")
        if command.epilog:
            example = command.epilog.removeprefix("Example: ")
            parts.append(f"Example:\n\n```text\n{example}\n```\n")
    return "\n".join(parts)


def option_row(parameter: Any, context: Any) -> str:
    """Return the line of an option or argument in the table of its command."""
    record = parameter.get_help_record(context)
    if record is None:
        names, text = parameter.human_readable_name, ""
    else:
        names, text = record
    text = " ".join((text or "").split()).replace("|", r"\|").replace("<", r"\<")
    names = names.replace("|", r"\|")
    return f"| `{names}` | {text} |"


def table_of(module: str, names: str, folder: str) -> str:
    """Return an autosummary table of names."""
    lines = [
        f".. currentmodule:: {module}\n",
        ".. autosummary::",
        f"   :toctree: {folder}",
        "   :nosignatures:\n",
    ]
    return "\n".join([*lines, *(f"   {name}" for name in names.split()), ""])


def page(title: str, intro: str, module: str, sections: dict[str, str]) -> str:
    """Return a page of the API reference."""
    text = [title, "=" * len(title), "", intro, ""]
    for heading, names in sections.items():
        if heading:
            text += [heading, "-" * len(heading), ""]
        text.append(table_of(module, names, module))
    return "\n".join(text)


def api() -> dict[str, str]:
    """Return the pages of the API reference; fail if a public name has no place."""
    import aucmax
    from aucmax import cluster, goals, losses, metrics, report, thresholds

    placed = set(" ".join(ESTIMATORS.values()).split())
    modules = {"data", "goals", "losses", "metrics", "report", "thresholds"}
    if missing := set(aucmax.__all__) - placed - modules:
        raise ValueError(f"public names that the API reference lacks: {missing}")
    placed = set(" ".join(STATISTICS.values()).split())
    results = [name for name in metrics.__all__ if name not in placed]
    if odd := [name for name in results if not name[0].isupper()]:
        raise ValueError(f"functions of aucmax.metrics without a section: {odd}")
    statistics = {**STATISTICS, "Results (named tuples)": " ".join(results)}
    displays = " ".join(sorted(report.__all__))
    others = " ".join(name for name in losses.__all__ if name != "NAMES")
    return {
        "estimators": page("Estimators", "``import aucmax``", "aucmax", ESTIMATORS),
        "metrics": page(
            "Statistics",
            "Functions of labels and scores, for any model: "
            "``from aucmax import metrics``. See also :doc:`/statistics`.",
            "aucmax.metrics",
            statistics,
        ),
        "goals": page(
            "Goals",
            "See also :doc:`/goals`.",
            "aucmax.goals",
            {"": " ".join(goals.__all__)},
        ),
        "thresholds": page(
            "Thresholds",
            "See also :doc:`/goals`.",
            "aucmax.thresholds",
            {"": " ".join(thresholds.__all__)},
        ),
        "report": page(
            "Plots and the HTML report",
            "Displays need ``pip install 'aucmax[plot]'``; the report does not.",
            "aucmax.report",
            {"": displays},
        ),
        "losses": page(
            "Losses",
            "Pairwise losses over all pairs in O(n log n).",
            "aucmax.losses",
            {"": others},
        ),
        "tables": page(
            "Tables",
            "The encoder that files and data frames share.",
            "aucmax.tables.encoder",
            {"": "TableEncoder"},
        ),
        "cluster": page(
            "Clusters",
            "Needs ``pip install 'aucmax[cluster]'``. See also :doc:`/scale`.",
            "aucmax.cluster",
            {"": " ".join(cluster.__all__)},
        ),
    }


def relink(text: str, folder: Path) -> str:
    """Return Markdown whose relative links work from ``docs/generated``.

    Links to pages of the site are kept. Links to other files of the repository become
    plain text.
    """

    def changed(match: re.Match[str]) -> str:
        sign, label, target = match.groups()
        if re.match(r"https?:|#|mailto:", target):
            return match[0]
        path, _, anchor = target.partition("#")
        found = (folder / path).resolve()
        if not sign and (found.suffix != ".md" or DOCS not in found.parents):
            return label
        anchor = f"#{anchor}" if anchor else ""
        return f"{sign}[{label}]({os.path.relpath(found, DOCS / 'generated')}{anchor})"

    return LINK.sub(changed, text)


def generate(app: Any, config: Any) -> None:
    """Write all generated pages."""
    folder = DOCS / "generated"
    write(folder / "commands.md", commands())
    for name, text in api().items():
        write(folder / "api" / f"{name}.rst", text)
    for name, source in COPIES.items():
        path = ROOT / source
        write(folder / name, relink(path.read_text(encoding="utf-8"), path.parent))


def escape_names(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Protect what reST reads otherwise.

    Links: ``coef_``, and goals, as addresses. Lists: "L. Kish" in a reference.
    """
    for k, line in enumerate(lines):
        line = line.replace("(n_features_in_,)", r"(n_features_in\_,)")
        line = re.sub(r"^(\.\. \[\d+\] [A-Z])\. ", r"\1\\. ", line)
        lines[k] = re.sub(r'"(\w+@[^"]+)"', r"``\1``", line)


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx: pages must exist before it looks for sources."""
    app.connect("config-inited", generate)
    app.connect("autodoc-process-docstring", escape_names, priority=1)
    return {"parallel_read_safe": True}
