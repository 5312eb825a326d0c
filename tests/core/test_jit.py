"""The cache of compiled kernels: shared, read-only, damaged, stale."""

import ast
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numba import config

import aucmax
from aucmax.core import jit

PACKAGE = Path(aucmax.__file__).parent
# A small kernel, called with arrays of some types: so many entries in one index. The
# code of one type gives nonsense for another.
TINY = """
import os, sys, time
import numpy as np
from aucmax.core.jit import kernel

@kernel
def total(values):
    s = 0.0
    for value in values:
        s += value
    return s

def main(name, kind):
    open(name + ".ready", "w").close()
    while not os.path.exists(os.path.join(os.path.dirname(name), "go")):
        time.sleep(0.001)
    print(total(np.array([3, 1, 2], kind)))
"""
KERNEL = "import sys, tiny; tiny.main(*sys.argv[1:])"
RIGHT = 6.0


def environment(**changes):
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("NUMBA_", "XDG_", "PYTEST"))
    }
    return {**inherited, **changes}


def start(code, *arguments, **changes):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return float(output)


def source_of(folder):
    source = folder / "tiny.py"
    if not source.exists():  # else another process may be about to read it
        source.write_text(TINY)
    return source


def start_kernel(folder, kind, cache):
    source_of(folder)
    path = os.pathsep.join([str(folder), str(PACKAGE.parent)])
    changes = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache)}
    return start(KERNEL, str(folder / kind), kind, **changes)


def run_kernel(folder, *kinds):
    """Return the sums of all kinds, and how often the cache had the code.

    A module that is loaded once more knows nothing of what was compiled before, so that
    there is no need for another process.
    """
    spec = importlib.util.spec_from_file_location("tiny", source_of(folder))
    tiny = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "CACHE_DIR", str(folder / "cache"))
        patch.setitem(sys.modules, "tiny", tiny)  # code from the cache asks for it
        spec.loader.exec_module(tiny)
        results = [tiny.total(np.array([3, 1, 2], kind)) for kind in kinds]
    return results, sum(tiny.total.stats.cache_hits.values())


def files(cache, pattern="*.nb*"):
    return sorted(cache.rglob(pattern))


def test_processes_that_start_at_once(tmp_path):
    kinds = ["f8", "f4", "i8", "i4"]
    cache = tmp_path / "cache"
    processes = [start_kernel(tmp_path, kind, cache) for kind in kinds]
    while len(list(tmp_path.glob("*.ready"))) < len(kinds):
        assert all(process.poll() is None for process in processes)
    (tmp_path / "go").touch()
    for process in processes:
        assert finish(process) == RIGHT
    # What they have left behind serves all types, each with its own code.
    assert run_kernel(tmp_path, *kinds) == ([RIGHT] * 4, 4)


def test_damaged_files(tmp_path):
    run_kernel(tmp_path, "f8")
    noise = np.random.default_rng(0)
    damages = [
        ("*.nbc", lambda content: content[: len(content) // 2]),
        ("*.nbi", lambda content: content[: len(content) // 2]),
        ("*.nb*", lambda content: b""),
        ("*.nb*", lambda content: noise.bytes(len(content))),
    ]
    for pattern, damage in damages:
        found = files(tmp_path / "cache", pattern)
        assert len(found) == (2 if pattern == "*.nb*" else 1)
        for file in found:
            file.write_bytes(damage(file.read_bytes()))
        assert run_kernel(tmp_path, "f8") == ([RIGHT], 0), pattern
    # And the cache is mended.
    assert run_kernel(tmp_path, "f8") == ([RIGHT], 1)


def test_code_with_a_flipped_bit_is_not_run(tmp_path):
    run_kernel(tmp_path, "f8")
    (file,) = files(tmp_path / "cache", "*.nbc")
    content = file.read_bytes()
    for place in np.linspace(100, len(content) - 100, 20).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 4
        file.write_bytes(damaged)
        assert run_kernel(tmp_path, "f8") == ([RIGHT], 0), place


def test_code_of_another_type_is_not_run(tmp_path):
    run_kernel(tmp_path, "f8", "i8")
    first, second = files(tmp_path / "cache", "*.nbc")
    contents = first.read_bytes(), second.read_bytes()
    second.write_bytes(contents[0])
    first.write_bytes(contents[1])
    assert run_kernel(tmp_path, "f8", "i8")[0] == [RIGHT, RIGHT]


def test_a_missing_data_file(tmp_path):
    run_kernel(tmp_path, "f8")
    for file in files(tmp_path / "cache", "*.nbc"):
        file.unlink()
    assert run_kernel(tmp_path, "f8") == ([RIGHT], 0)


def test_a_folder_that_goes_away(tmp_path):
    cache = tmp_path / "cache"
    process = start_kernel(tmp_path, "f8", cache)
    while not (tmp_path / "f8.ready").exists():
        assert process.poll() is None
    shutil.rmtree(cache)
    cache.touch()  # no folder can be made there
    (tmp_path / "go").touch()
    assert finish(process) == RIGHT


FIT = """
import numpy as np, aucmax
assert aucmax.__file__.startswith({package!r}), aucmax.__file__
X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
model = aucmax.LeastSquaresAUC().fit(X, [0, 0, 1, 1])
print(model.score(X, [0, 0, 1, 1]))
"""


THRESHOLD = """
from aucmax.online.solam import l1_threshold
print(l1_threshold(np.array([3.0, 1.0]), 2.0))
"""


@pytest.fixture
def read_only_copy():
    """Return a copy of the package in which nothing can be written.

    Permissions do not stop root, but a file where a folder has to be stops anyone.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "aucmax"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
        for path in folders:
            (path / "__pycache__").touch()
            path.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP)
        yield copy
        for path in folders:
            path.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("cache", ["", "file", "file/below"])
def test_nowhere_to_write(read_only_copy, cache, tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    changes = {
        "PYTHONPATH": str(read_only_copy.parent),
        "HOME": str(blocked),
        "XDG_CACHE_HOME": str(blocked),
    }
    code = FIT.format(package=str(read_only_copy))
    if cache:  # compiling a fit takes its time: once is enough
        changes["NUMBA_CACHE_DIR"] = str(tmp_path / cache)
        code = code.partition("X = ")[0] + THRESHOLD
    assert finish(start(code, **changes)) == 1.0
    assert not list(read_only_copy.rglob("*.nb*"))


@pytest.mark.parametrize(
    ("folder", "inside", "outside"),
    [
        ("online", ["core", "base", "online", "online/engine"], ["linear", "io"]),
        ("online/engine", ["core", "base", "online", "online/engine"], ["linear"]),
        ("linear/solvers", ["core", "base", "linear", "linear/solvers"], ["online"]),
        ("io", ["core", "base", "io", "tables"], ["linear", "online"]),
    ],
)
def test_a_change_of_what_is_compiled_in_is_a_change_of_name(
    folder, inside, outside, tmp_path, monkeypatch
):
    copy = tmp_path / "aucmax"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "_PACKAGE", copy)

    def fingerprint():
        jit._digest.cache_clear()
        return jit._fingerprint.__wrapped__(copy / folder)

    seen = {before := fingerprint()}
    for name in (*inside, *outside):
        file = next((copy / name).glob("*.py"))
        content = file.read_bytes()
        file.write_bytes(content + b"\n# changed\n")
        assert (fingerprint() != before) == (name in inside), name
        seen.add(fingerprint())
        file.write_bytes(content)
    assert len(seen) == 1 + len(inside)
    assert fingerprint() == before
    jit._digest.cache_clear()


def compiled_names(tree):
    """Return the names that the compiled functions of a module use."""
    marks = {"kernel", "inlined", "vectorised", "rowwise"}
    return {
        name.id
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any(getattr(mark, "id", "") in marks for mark in function.decorator_list)
        for name in ast.walk(function)
        if isinstance(name, ast.Name)
    }


def test_kernels_call_only_functions_that_the_fingerprint_covers():
    for file in PACKAGE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        used, own = compiled_names(tree), file.relative_to(PACKAGE).parts[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and used & {
                alias.asname or alias.name for alias in node.names
            }:
                root, *parts = node.module.split(".")
                covered = {"core", "base", own, "tables" if own == "io" else own}
                assert root != "aucmax" or parts[0] in covered, (file, node.module)


def test_the_fingerprint_is_in_the_path(tmp_path):
    run_kernel(tmp_path, "f8")
    found = files(tmp_path / "cache")
    assert len(found) == 2
    assert all(jit._fingerprint(tmp_path) in str(file) for file in found)


def test_kernels_divide_like_numpy():
    @jit.kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == np.inf
    assert np.isnan(divide(0.0, 0.0))


def test_the_cache_is_where_nobody_else_can_write(tmp_path, monkeypatch):
    system, ours, open_to_all = (tmp_path / name for name in ("tmp", "ours", "open"))
    for folder in (system, ours, open_to_all):
        folder.mkdir()
    ours.chmod(0o755)
    open_to_all.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(system))
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no HOME
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def chosen(wanted):
        jit._private_folder.cache_clear()
        monkeypatch.setattr(config, "CACHE_DIR", str(wanted))
        found = jit._cache_folder("fingerprint")
        return found and Path(found)

    for wanted in (ours, open_to_all, tmp_path / "new"):
        private = chosen(wanted)
        assert private.parent == wanted
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for wanted in ("relative", "~/.cache", ""):
        assert chosen(wanted).parent == system
    taken = chosen(open_to_all)
    taken.chmod(0o777)  # somebody else may have been there
    assert chosen(open_to_all).parent == system
    taken.rmdir()
    taken.symlink_to(ours)
    assert chosen(open_to_all).parent == system
    chosen("relative").chmod(0o777)
    assert chosen("relative") is None  # compiled in memory
    jit._private_folder.cache_clear()


def test_an_account_without_a_home_leaves_no_folder_behind(tmp_path):
    """Numba would make a folder ``~`` in the working folder, and trust it."""
    source_of(tmp_path)
    code = (
        "import os; os.path.expanduser = lambda path: path\n"
        "import numpy, tiny; assert tiny.total(numpy.ones(3)) == 3.0"
    )
    work = tmp_path / "work"
    work.mkdir()
    path = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=work,
        env=environment(PYTHONPATH=path, TMPDIR=str(tmp_path)),
        check=True,
    )
    assert not list(work.iterdir())
    assert list(tmp_path.glob("aucmax-*"))
