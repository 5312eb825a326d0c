"""Run the fits of a paper and append each to a results file.

A run can be stopped at any time and resumed. A fit that fails, or kills its process, is
a line with an error and is retried the next time.
"""

import signal
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import aucmax
from aucmax_reproduction import datasets as registry
from aucmax_reproduction import lines, papers, user_data
from aucmax_reproduction.fitting import (
    CEILINGS,
    EXACT,
    EXACT_BY,
    Effort,
    Job,
    fitted,
    recipe_of,
    rules_of,
)
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import FORMS, OURS, PRINTED, Plan, Subject
from aucmax_reproduction.protocols import protocol

_TRIAL_RUNS = 2  # to screen a rule
_NEAR = 0.01  # minimum tolerance around the highest published AUC

Watch = Callable[[str, int, int], None]  # what was done, fits done, all fits


class Wanted(NamedTuple):
    """Selection of what to run of a paper; empty: all."""

    source: str
    tables: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    forms: tuple[str, ...] = (OURS, PRINTED)
    runs: int | None = None  # maximum per cell; None: as in the paper
    search: bool = False  # for rules of the class groups
    data: tuple[str, ...] = ()  # NAME=FILE: the user's own files

    @property
    def cells(self) -> list[Printed]:
        """The selected cells."""
        return papers.cells(self.source, self.tables, self.datasets, self.algorithms)


def head(wanted: Wanted, effort: Effort) -> lines.Line:
    """Return the header of a results file."""
    files = {"data": list(wanted.data)} if wanted.data else {}
    version = {"source": wanted.source, "aucmax": aucmax.__version__}
    return {**version, **effort._asdict(), **files}


def reproduce(
    wanted: Wanted,
    path: Path,
    effort: Effort,
    *,
    workers: int = 1,
    watch: Watch = lambda text, done, total: None,
) -> list[lines.Line]:
    """Do the fits that are not in a file yet; return all selected fits.

    Parameters
    ----------
    wanted : Wanted
        Selected cells.
    path : Path
        Results file, from an earlier run with the same limits, or new.
    effort : Effort
        Limits on the effort.
    workers : int, default=1
        Number of processes; 1 uses this process.
    watch : callable
        Progress callback ``(what, done, total)``.

    Returns
    -------
    list of dict
        Lines of the selected fits, including failures.
    """
    first = head(wanted, effort)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {key(line): line for line in lines.read(path, first)}
    with lines.Writer(path, first) as writer:
        trials = list(screening(wanted)) if wanted.search else []
        work = partial(_all, done=done, writer=writer, watch=watch)
        found = work(trials, _workers(wanted, effort, workers))
        jobs = list(jobs_of(wanted, found))
        found += work(jobs, _workers(wanted, effort, workers))
    return list({key(line): line for line in found}.values())


def recorded(wanted: Wanted, path: Path) -> tuple[Wanted, Effort, list[lines.Line]]:
    """Read the selection, the limits and the fits from a results file."""
    first = lines.head_of(path)
    effort = Effort(**{name: first[name] for name in Effort._fields})
    data = tuple(first.get("data", ()))
    user_data.use(wanted.source, data)
    found = list({key(line): line for line in lines.read(path)}.values())
    there = {line["table"] for line in found}
    paper = protocol(wanted.source)
    tables = dict.fromkeys(cell.table for cell in papers.cells(wanted.source))
    has = tuple(name for name in tables if paper.plan(name)[0] in there)
    forms = tuple(form for form in FORMS if any(f["form"] == form for f in found))
    has = wanted.tables or has
    wanted = wanted._replace(tables=has, forms=forms, runs=None, data=data)
    return wanted, effort, found


def key(line: lines.Line) -> tuple[Any, ...]:
    """Return the key that identifies a fit."""
    return tuple(line[name] for name in Job._fields[1:])


def why_missing(subject: Subject) -> str:
    """Return why a set is not available; empty if it is."""
    if subject.files:
        gone = [file for file in subject.files if not Path(file).is_file()]
        return f"{gone[0]} does not exist" if gone else ""
    if subject.name is None:
        return subject.cannot
    known = registry.entry(subject.name)
    parts = [
        part
        for which, part in known.parts.items()
        if subject.part in (None, which) and registry.locate(part) is None
    ]
    if not parts:
        return ""
    if all(part.url for part in parts):
        command = f"python -m aucmax_reproduction.datasets {subject.name}"
        return f"not on this machine: {command} downloads it"
    return f"not on this machine: {parts[0].file} has no public address"


def why_not_run(cell: Printed) -> str:
    """Return why a cell cannot be run; empty if it can."""
    if cell.copied:
        return "copied by the authors from gao2013-opauc: reproduce it there"
    _, plan = protocol(cell.source).plan(cell.table)
    return why_missing(plan.subjects[cell.dataset])


def why_not_comparable(cell: Printed) -> str:
    """Return why a cell cannot be compared; empty if it can."""
    if cell.metric == papers.SECONDS:
        return "seconds of another machine"
    _, plan = protocol(cell.source).plan(cell.table)
    return plan.subjects[cell.dataset].cannot


def jobs_of(wanted: Wanted, screened: Sequence[lines.Line] = ()) -> Iterator[Job]:
    """Yield the fits of the cells that can be run and compared.

    The order is run by run, all algorithms on the same rows, with the exact linear
    models first. If the class groups are unknown, under each rule that the ``screened``
    fits leave.
    """
    for (table, dataset), names in _places(wanted).items():
        _, plan = protocol(wanted.source).plan(table)
        subject = plan.subjects[dataset]
        if subject.unknown:
            rules = near_rules(wanted.source, table, dataset, screened)
        else:
            rules = [] if subject.cannot else [""]
        for rule in rules:
            place = wanted.source, table, dataset, rule
            for run in range(_least(plan.split.runs, wanted.runs)):
                yield from (Job(*place, name, EXACT, run) for name in CEILINGS)
                for name in names:
                    if run < _least(plan.split.runs, plan.recipes[name].runs):
                        forms = forms_of(plan, name, wanted.forms)
                        yield from (Job(*place, name, form, run) for form in forms)


def trainings(job: Job, effort: Effort) -> int:
    """Return the number of models that a fit trains, including tuning."""
    plan, recipe = recipe_of(job)
    few = np.array([False, True])  # the number of values does not depend on the rows
    choices = prod(len(v) for v in recipe.choices(job.form, few, effort.grid).values())
    return 1 + (choices * max(plan.folds, 1) if choices > 1 else 0)


def forms_of(plan: Plan, algorithm: str, forms: Iterable[str]) -> list[str]:
    """Return the distinct forms of an algorithm."""
    tunes = bool(plan.recipes[algorithm].grid)
    return [form for form in forms if form == OURS or tunes]


def screening(wanted: Wanted) -> Iterator[Job]:
    """Yield fits of the exact minimum under each rule, if the rule is unknown."""
    for table, dataset in _places(wanted):
        _, plan = protocol(wanted.source).plan(table)
        subject = plan.subjects[dataset]
        for rule in rules_of(subject) if subject.unknown else ():
            for run in range(min(_TRIAL_RUNS, plan.split.runs)):
                yield Job(wanted.source, table, dataset, rule, EXACT_BY, EXACT, run)


def _places(wanted: Wanted) -> dict[tuple[str, str], list[str]]:
    """Return the algorithms that can be run, by table and set."""
    places: dict[tuple[str, str], list[str]] = {}
    for cell in wanted.cells:
        if not why_not_run(cell):
            table, _ = protocol(wanted.source).plan(cell.table)
            names = places.setdefault((table, cell.dataset), [])
            names += [cell.algorithm] if cell.algorithm not in names else []
    return places


def near_rules(
    source: str, table: str, dataset: str, screened: Sequence[lines.Line], most: int = 3
) -> list[str]:
    """Return the rules whose exact minimum is near the highest published AUC."""
    best = best_printed(source, table, dataset)
    areas: dict[str, list[float]] = {}
    for line in screened:
        place = line["table"], line["dataset"], line["form"], line["algorithm"]
        if place == (table, dataset, EXACT, EXACT_BY) and "auc" in line:
            areas.setdefault(line["rule"], []).append(line["auc"])
    off = {rule: abs(sum(a) / len(a) - best.mean) for rule, a in areas.items()}
    near = [rule for rule in off if off[rule] <= slack(best)]
    return sorted(near, key=lambda rule: off[rule])[:most]


def best_printed(
    source: str, table: str, dataset: str, metric: str = papers.AUC
) -> Printed:
    """Return the cell with the highest value on a set that was not copied."""
    cells = papers.cells(source, [table], [dataset])
    own = [cell for cell in cells if not cell.copied and cell.metric == metric]
    return max(own, key=lambda cell: cell.mean)


def slack(cell: Printed) -> float:
    """Return the tolerance around a published mean for the same task."""
    return max(_NEAR, 2.0 * (cell.std or 0.0))


Work = Callable[[Sequence[Job]], Iterator[lines.Line]]


def _workers(wanted: Wanted, effort: Effort, count: int) -> Work:
    """Return a function that does jobs, in this process or in several."""
    if count == 1:
        return lambda jobs: (fitted(job, effort) for job in jobs)
    start = partial(_start, wanted.source, wanted.data)
    return partial(_in_processes, effort=effort, workers=count, start=start)


def _all(
    jobs: Sequence[Job],
    work: Work,
    done: dict[tuple[Any, ...], lines.Line],
    writer: lines.Writer,
    watch: Watch,
) -> list[lines.Line]:
    """Do the jobs that are not done; return all lines in the order of the jobs."""
    todo = [job for job in jobs if "auc" not in done.get(tuple(job[1:]), {})]
    before = len(jobs) - len(todo)
    if todo:
        watch(f"{todo[0].table} {todo[0].dataset}", before, len(jobs))
    for count, line in enumerate(work(todo), before + 1):
        writer.write(line)
        done[key(line)] = line
        watch(
            f"{line['table']} {line['dataset']} {line['algorithm']}", count, len(jobs)
        )
    return [done[tuple(job[1:])] for job in jobs]


def _start(source: str, data: Sequence[str]) -> None:
    """Prepare a worker process: Ctrl-C ends it silently."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    user_data.use(source, data)


def _in_processes(
    jobs: Collection[Job],
    effort: Effort,
    workers: int,
    start: Callable[[], None] | None = None,
) -> Iterator[lines.Line]:
    """Do jobs in several processes; one that dies does not affect the others."""
    todo = deque(jobs)
    while todo:
        running: dict[Future[lines.Line], Job] = {}
        with _pool(workers, start) as pool:
            try:
                while todo or running:
                    while todo and len(running) < workers:
                        job = todo.popleft()
                        running[pool.submit(fitted, job, effort)] = job
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        yield future.result()
                        del running[future]
            except BrokenProcessPool:  # one of the running jobs is the cause
                pass
        for job in running.values():
            yield _alone(job, effort, start)


def _alone(job: Job, effort: Effort, start: Callable[[], None] | None) -> lines.Line:
    """Do a job in its own process, to find out whether it kills it."""
    with _pool(1, start) as pool:
        try:
            return pool.submit(fitted, job, effort).result()
        except BrokenProcessPool:
            asked = {name: getattr(job, name) for name in Job._fields[1:]}
            return {**asked, "error": "the process died, perhaps out of memory"}


def _pool(workers: int, start: Callable[[], None] | None) -> ProcessPoolExecutor:
    # A forked worker could wait for a lock forever.
    context = get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=start)


def _least(runs: int, most: int | None) -> int:
    return runs if most is None else min(runs, most)
