"""The TRIPOD+AI checklist, filled in as far as the software knows.

Collins et al.: TRIPOD+AI statement. BMJ 385 (2024), e078378. Items are paraphrased.
"""

from collections.abc import Mapping
from html import escape

from aucmax.report.summary import Summary

_AUTHOR = "for the authors"
_ITEMS: tuple[tuple[str, str], ...] = (
    ("1", "Title"),
    ("2", "Abstract"),
    ("3", "Background, intended users, known inequalities"),
    ("4", "Objectives"),
    ("5", "Data sources and dates"),
    ("6", "Participants: setting, eligibility, treatments"),
    ("7", "Data preparation"),
    ("8", "Outcome: definition and assessment"),
    ("9", "Predictors: choice, definition, measurement"),
    ("10", "Sample size"),
    ("11", "Missing data"),
    ("12", "Analytical methods: how data were split, model, tuning, performance"),
    ("13", "Class imbalance"),
    ("14", "Fairness"),
    ("15", "Model output and thresholds"),
    ("16", "Differences between training and evaluation data"),
    ("17", "Ethical approval"),
    ("18", "Funding, interests, protocol, registration, data and code sharing"),
    ("19", "Patient and public involvement"),
    ("20", "Participants in the analysis"),
    ("21", "Model development: numbers in each analysis"),
    ("22", "Model specification"),
    ("23", "Model performance with confidence intervals, also by group"),
    ("24", "Model updating"),
    ("25", "Interpretation"),
    ("26", "Limitations"),
    ("27", "Usability: input quality, user interaction, next steps"),
)


def checklist(
    summary: Summary, card: Mapping[str, Mapping[str, object]]
) -> tuple[str, str, str]:
    """Return the section of the checklist: its name, heading and HTML."""
    known = _known(summary, card)
    lines = "".join(
        f"<tr><th>{number}. {escape(item)}</th>"
        f"<td>{known.get(number, _AUTHOR)}</td></tr>"
        for number, item in _ITEMS
    )
    note = (
        "For reports on prediction models in medicine. The software fills in what it "
        "knows; the rest is for the authors."
    )
    return (
        "checklist",
        "TRIPOD+AI checklist",
        f'<details><summary>{note}</summary><div class="scroll"><table class="words">'
        f"<tbody>{lines}</tbody></table></div></details>",
    )


def _known(
    summary: Summary, card: Mapping[str, Mapping[str, object]]
) -> dict[str, str]:
    share = 100.0 * summary.positives / summary.rows
    found = {
        "10": f"{summary.positives:,} positives and "
        f"{summary.rows - summary.positives:,} negatives in this evaluation; see the "
        "width of the intervals",
        "13": f"{share:.3g} % of the rows are positive; measures are for this share",
        "15": 'see <a href="#threshold">thresholds</a>',
        "20": f"{summary.rows:,} rows, {summary.positives:,} positive",
        "23": 'see <a href="#measures">measures</a>'
        + (' and <a href="#groups">groups</a>' if summary.groups else ""),
    }
    if summary.groups is not None:
        found["14"] = 'AUC by group: see <a href="#groups">groups</a>'
    if summary.periods:
        found["16"] = 'shift of the scores over time: see <a href="#time">time</a>'
    if card:
        link = 'see the <a href="#card">model card</a>'
        for number in ("5", "7", "9", "11", "12", "21", "22"):
            found[number] = link
    return found
