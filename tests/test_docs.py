"""Code blocks of README.md and docs/ run as they are.

Blocks of a page share names. Names that a page does not define itself (``X``, ``y``,
``chunks`` …) are those of ``names``; files are those of ``write_files``. A block after
``<!-- not run: reason -->`` is compiled only.
"""

import gzip
import os
import re
import shlex
import subprocess
import sys
from copy import deepcopy
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"generated", "_build"} & set(page.parts)]
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n)?^(?P<indent> *)```(?P<language>[^\n]*)\n"
    r"(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
NOT_CODE = ("text", "{")  # output, and directives of MyST
MODULES = ["cluster", "goals", "losses", "metrics", "report", "thresholds"]
SLOW = ("aucmax demo", "pip install")  # the two commands that .ci/run runs


def blocks(page):
    """Return (language, code, whether to run it) of each block of a page."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        (block["language"], block["code"], block["skip"] is None)
        for block in found
        if not block["language"].startswith(NOT_CODE)
    ]


CODE = [page for page in PAGES if blocks(page)]


@cache
def names():
    """Return what the examples assume."""
    from aucmax import AUCStream

    X, y = load_breast_cancer(return_X_y=True)
    X += np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0)
    X, X_test, y, y_test = train_test_split(X, 1 - y, stratify=y, random_state=0)
    model = AUCStream(random_state=0).fit(X, y)
    p = model.predict_proba(X_test)[:, 1]
    return {
        "X": X,
        "y": y,
        "X_test": X_test,
        "y_test": y_test,
        "X_here": X[:200],
        "y_here": y[:200],
        "X_there": X[200:],
        "y_there": y[200:],
        "chunks": [(X[:200], y[:200]), (X[200:], y[200:])],
        "model": model,
        "scores": p,
        "probability": p,
        "other_scores": X_test[:, 0],
        "fold_scores": X[:, 0],
        "folds": np.arange(len(y)) % 5,
        "month": np.where(np.arange(len(p)) % 2, "2024-01", "2024-02"),
    }


def write_files(folder):
    """Write the data files that the commands name."""
    rng = np.random.default_rng(0)
    for name, label in {
        "loans.csv": "default",
        "new.csv": "default",
        "transactions.csv": "fraud",
        "new-transactions.csv": "fraud",
        "clicks-1.csv.gz": "clicked",
        "today.csv": "clicked",
        "tomorrow.csv": "clicked",
    }.items():
        lines = [f"amount,country,month,{label}"]
        for _ in range(360):
            amount = rng.normal()
            positive = int(amount + rng.normal() > 1.0)
            country, month = rng.choice(["CH", "FR", "PT"]), rng.integers(1, 4)
            lines.append(f"{amount:.4f},{country},2024-{month:02d},{positive}")
        text = "\n".join(lines) + "\n"
        if name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    lines = []
    for _ in range(500):
        x = rng.normal(size=3)
        lines.append(f"{int(x[0] > 0.5)} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{x[2]:.3f}\n")
    for name in ("clicks.svm.gz", "stream.svm.gz"):
        (folder / name).write_bytes(gzip.compress("".join(lines).encode()))


def run_commands(code, folder):
    """Run shell commands; ``aucmax`` alone runs in this process, which is faster."""
    from aucmax.cli.main import app

    for line in code.replace("\\\n", " ").splitlines():
        line = line.split("  #")[0].removeprefix("$ ").strip()
        if not line or any(word in line for word in SLOW):
            continue
        if line.startswith("aucmax ") and not re.search(r"[|>]", line):
            words = []
            for word in shlex.split(line)[1:]:
                words += sorted(map(str, Path().glob(word))) if "*" in word else [word]
            app(words, standalone_mode=False)
        else:
            command = f"{shlex.quote(sys.executable)} -m aucmax "
            line = re.sub(r"(?<![\w.])aucmax ", command, line)
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", line], cwd=folder, check=True
            )


@pytest.mark.parametrize(
    "page", CODE, ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_code_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "MPLBACKEND", "Agg")
    found = blocks(page)
    if any(language == "console" for language, *_ in found):
        write_files(tmp_path)
    space = deepcopy(names())
    for language, code, wanted in found:
        if language == "python":
            program = compile(code, str(page), "exec")
            if wanted:
                exec(program, space)
        else:
            assert language == "console", f"{page.name}: a block of {language!r}"
            if wanted:
                run_commands(code, tmp_path)


def test_the_learner_of_contributing_learns(tmp_path, monkeypatch):
    """The blocks of the worked example make a learner, with the imports of UniExp."""
    source = (ROOT / "src/aucmax/online/uniexp.py").read_text(encoding="utf-8")
    header = source.partition('"""\n\n')[2].partition("\n# Slots")[0]
    header += (
        "\nfrom aucmax.core.rows import entry, rowwise, stored"
        "\nfrom aucmax.online.engine.feature_table import average_part, class_means\n"
    )
    found = blocks(ROOT / "CONTRIBUTING.md")
    code = [dedent(code) for language, code, _ in found if language == "python"]
    assert len(code) == 5
    (tmp_path / "worked_example.py").write_text(header + "\n".join(code))
    monkeypatch.syspath_prepend(tmp_path)
    example = import_module("worked_example")
    X, y = names()["X"], names()["y"]
    model = example.BalancedLog(random_state=0).fit(X, y)
    assert model.score(names()["X_test"], names()["y_test"]) > 0.9
    halves = example.BalancedLog(random_state=0)
    for part in (slice(0, 200), slice(200, None)):
        halves.partial_fit(X[part], y[part], classes=[0, 1])
    whole = example.BalancedLog(random_state=0).partial_fit(X, y)
    np.testing.assert_array_equal(halves.coef_, whole.coef_)
    table = model.state_.table
    before = example.engine.weights(table).copy()
    example.move_mean(table, 0, 0.1)
    assert (example.engine.weights(table) != before).any()


def test_titles_that_people_search_for():
    titles = "\n".join(
        page.read_text(encoding="utf-8").partition("\n")[0] for page in PAGES
    )
    for title in (
        "Maximize AUC in Python",
        "Partial AUC",
        "Precision at k",
        "DeLong test in Python",
        "Confidence interval of a ROC curve",
        "Online AUC",
        "Imbalanced classification as ranking",
    ):
        assert f"# {title}" in titles


def test_examples_have_a_title_and_a_picture():
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert len(examples) >= 12
    for path in examples:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""\n')
        assert "plt." in text or "Display" in text
        compile(text, str(path), "exec")


@pytest.fixture(scope="module")
def api_pages():
    spec = spec_from_file_location("pages", ROOT / "docs/_ext/generated_pages.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.api()


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_a_place_in_the_api_reference(api_pages, module):
    lines = {line.strip() for line in api_pages[module].splitlines()}
    public = set(import_module(f"aucmax.{module}").__all__) - {"NAMES"}
    assert public <= lines


def test_every_public_name_has_an_example_in_its_docstring():
    without = []
    for place in ["aucmax", *(f"aucmax.{name}" for name in MODULES)]:
        module = import_module(place)
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing) or is_class_of(thing, (tuple, Exception)):
                continue  # results are described where they are returned
            if ">>>" not in (thing.__doc__ or ""):
                without.append(f"{place}.{name}")
    assert without == []


METHODS = {
    "AUCClassifier": (
        "columns_ decision_function estimate explain expression feature_importances_ "
        "fit importances_ predict predict_proba reasons save score"
    ),
    "AUCStream": (
        "coef_ decision_function drift_ expression finish fit intercept_ leaderboard_ "
        "members_ partial_fit predict predict_proba progressive_auc refits_ save score "
        "set_categories"
    ),
}


def hidden(name):
    """Return the members that the page of a class leaves out."""
    template = (ROOT / "docs/_templates/autosummary/class.rst").read_text()
    template, count = re.subn(
        r'\{% if objname != "(\w+)" %\}(.*?)\{% endif %\}',
        lambda found: found[2] if found[1] != name else "",
        template,
    )
    assert count == 1
    words = re.search(":exclude-members: (.*)", template)[1]
    return {word.strip() for word in words.split(",")}


@pytest.mark.parametrize("name", METHODS)
def test_api_pages_show_the_methods_for_users(name):
    import aucmax

    kind = getattr(aucmax, name)
    own = [base for base in kind.__mro__ if base.__module__.startswith("aucmax")]
    known = {
        member
        for base in own
        for member, value in vars(base).items()
        if not member.startswith("_") and getattr(value, "__doc__", None)
        if callable(value) or isinstance(value, property | classmethod)
    } | {"score"}  # of scikit-learn
    assert known - hidden(name) == set(METHODS[name].split())


def test_every_member_that_api_pages_hide_is_one():
    import aucmax

    members = {
        member for name in aucmax.ESTIMATORS for member in dir(getattr(aucmax, name))
    }
    of_sklearn = re.compile(r"set_\w+_request|set_output")
    assert {one for one in hidden("") if not of_sklearn.fullmatch(one)} <= members


def test_docstrings_link_to_pages_that_exist():
    linked = 0
    for path in (ROOT / "src").rglob("*.py"):
        for page in re.findall(r":doc:`[^<`]*</(\S+)>`", path.read_text("utf-8")):
            assert (ROOT / f"docs/{page}.md").exists(), f"{path.name}: {page}"
            linked += 1
    assert linked >= 2


def is_class_of(thing, kinds):
    return isinstance(thing, type) and issubclass(thing, kinds)


def test_every_api_page_is_in_the_contents(api_pages):
    contents = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    for name in api_pages:
        assert f"generated/api/{name}\n" in contents
