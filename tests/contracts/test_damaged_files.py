"""Contract: damaged, foreign or tampered model files raise errors and never crash."""

import json
import os
import pickle
import re
import subprocess
import sys
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy import sparse
from sklearn.base import clone

import aucmax
from aucmax import ASAM, CBR, OAM, OPAUC, SAM, SPAM, AUCStream
from aucmax.storage import model_file
from contracts.estimators import PLAIN, seeded, trained
from helpers.data import gaussian, scattered


@pytest.mark.parametrize("cut", [0, 1, 8, 100, 0.5, -8, -1])
def test_truncated_file(cut, tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    content = path.read_bytes()
    size = int(cut * len(content)) if isinstance(cut, float) else cut
    path.write_bytes(content[:size])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        aucmax.load(path)


def test_corrupted_file(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(8 * len(content), 300, replace=False):
        garbled = bytearray(content)
        garbled[at // 8] ^= 1 << at % 8
        path.write_bytes(garbled)
        with pytest.raises(ValueError, match="damaged") as caught:
            aucmax.load(path)
        assert str(path) in str(caught.value)


def test_corrupted_header_with_a_valid_checksum(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    header, tensors = model_file.read(path)
    content = json.dumps(header)
    rng = np.random.default_rng(0)
    for at in rng.choice(len(content), 60, replace=False):
        garbled = content[:at] + rng.choice([*'\0"{9ÿ']) + content[at + 1 :]
        parts = model_file._signed(tensors, garbled)
        path.write_bytes(b"".join(bytes(part) for part in parts))
        try:
            model = aucmax.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:  # the change is harmless: the model must work
            assert np.isfinite(model.coef_).all()


def nested_json(depth):
    """Return JSON objects nested to this depth."""
    value = 1
    for _ in range(depth):
        value = {"random_state": {"class": "Chain", "parameters": value}}
    return value


def edit_header(path, edit):
    """Change the header of a model file; its checksum is valid."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["aucmax"])
    edit(header)
    model_file.write(path, header, load_file(path))


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda header: header.update(format="other"), "not an aucmax model"),
        (lambda header: header.update(version=99), "version 99.*Upgrade"),
        (
            lambda header: header.update(version=1),
            "version 1 .*too old: train the model again",
        ),
        (lambda header: header.update({"class": "os.system"}), "os.system"),
        (lambda header: header.update({"class": "Pipeline"}), "Pipeline"),
        (lambda header: header.pop("class"), "class"),
        (lambda header: header.pop("parameters"), "parameters"),
        (lambda header: header.pop("attributes"), "attributes"),
        (lambda header: header.pop("classes"), "classes"),
        (lambda header: header.pop("features"), "features"),
        (lambda header: header["attributes"].pop("n_features_in_"), "n_features_in_"),
        (lambda header: header["attributes"].update(n_features_in_=7), "coef"),
        (lambda header: header["attributes"].update(n_features_in_="x"), "x"),
        (lambda header: header["attributes"].update(n_features_in_=0), "no features"),
        (lambda header: header["parameters"].update(l2=-1.0), "'l2' parameter"),
        (lambda header: header["parameters"].update(schedule="fast"), "'schedule'"),
        (lambda header: header["parameters"].update(l3=1.0), "l3"),
        (lambda header: header["classes"].update(values=[1]), "labels"),
        (lambda header: header["classes"].update(values=[1, 1]), "not two different"),
        (lambda header: header["classes"].update(values=[[0], [1]]), "not two numbers"),
        (lambda header: header.update(features=[0, 1, 2, 3, 4, 5]), "not strings"),
        (lambda header: header["attributes"].update(n_iter_=0.5), "whole number"),
        (lambda header: header["attributes"].pop("n_iter_"), "n_iter_"),
        (lambda header: header.update(parameters=nested_json(300)), "damaged"),
        (lambda header: header["classes"].update(dtype="spam"), "spam"),
        (lambda header: header.update(classes=[0, 1]), "damaged"),
        (lambda header: header.update(features=["a", "b"]), "features"),
        (
            lambda header: header["parameters"].update(
                random_state={"RandomState": ["MT19937", [-1] * 624, 0, 0, 0.0]}
            ),
            "damaged",
        ),
    ],
)
def test_invalid_header(edit, text, tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    edit_header(path, lambda header: None)
    aucmax.load(path)  # the edit is what breaks it
    edit_header(path, edit)
    with pytest.raises(ValueError, match=text) as caught:
        aucmax.load(path)
    assert str(path) in str(caught.value)


def test_impossible_buffer_size(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(OAM(), *gaussian(30)).save(path)
    for size in (10**15, 10**30):
        edit_header(
            path, lambda header, n=size: header["parameters"].update(buffer_size=n)
        )
        with pytest.raises(ValueError, match=re.escape(str(path))):
            aucmax.load(path)


def test_foreign_files(tmp_path):
    path = tmp_path / "model.aucmax"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not an aucmax model file"):
        aucmax.load(path)
    path.write_bytes(pickle.dumps({"coef": np.ones(3)}))
    with pytest.raises(ValueError, match="not an aucmax model file"):
        aucmax.load(path)
    save_file({"coef": np.ones((1, 3))}, path)
    with pytest.raises(ValueError, match="not an aucmax model"):
        aucmax.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        aucmax.load(tmp_path / "nowhere.aucmax")
    with pytest.raises(IsADirectoryError, match="folder"):
        aucmax.load(tmp_path)


def tampered(tensors):
    """Yield descriptions and tensors with one array changed."""
    for field in sorted(tensors):
        shapes = [tensors[field][..., np.newaxis], tensors[field].ravel()[:-1]]
        for k, other in enumerate(shapes):
            yield f"{field} of shape {k}", tensors | {field: other.copy()}
        flat = tensors[field].ravel()
        used = np.flatnonzero(flat)  # most of a buffer may be empty
        places = [*used[:1], slice(None), 0, -1, *used[-1:]]
        for value in (np.nan, np.inf, 1e300, -1.0, 1e9, 0.5):
            # Values that could be indices are tried everywhere, others in two places.
            stop = None if abs(value) < 1e10 else 2
            for place in places[:stop] if flat.size else ():
                changed = flat.copy()
                changed[place] = value
                changed = changed.reshape(tensors[field].shape)
                yield f"{field}[{place}] = {value}", tensors | {field: changed}
        if flat.size:  # the same row, feature or number everywhere
            changed = np.full_like(tensors[field], flat[used[0]] if used.size else 1.0)
            yield f"{field} all alike", tensors | {field: changed}


def small_learners():
    """Return learners with small states, one of each kind."""
    small = {"buffer_size": 3, "max_iter": 2}
    kinds = [*PLAIN, CBR(covariance="diag"), OPAUC(rank=2), OAM(policy="reservoir")]
    # tools/fuzz_models.py covers AUCStream; SAM and ASAM have the state of PSAM.
    kinds = [kind for kind in kinds if type(kind) not in (AUCStream, SAM, ASAM)]
    return [seeded(e, **small) for e in kinds if hasattr(e, "partial_fit")]


def use_tampered_files(folder, method):
    """Load and use tampered files; print each first, to identify a crash."""
    path = Path(folder) / "model.aucmax"
    X, y = scattered(8, 4)
    X[X[:, 0] == 0.0, 0] = 0.1
    layouts = cycle([X, sparse.csr_array(X)])  # in turn: the state is under test
    for model in small_learners():
        getattr(clone(model), method)(X, y).save(path)
        header, arrays = model_file.read(path)
        for what, tensors in tampered(arrays):
            print(f"{type(model).__name__}, {method}: {what}", flush=True)
            model_file.write(path, header, tensors)
            try:
                mutant = aucmax.load(path)
            except ValueError:
                continue
            with np.errstate(all="ignore"):
                mutant.decision_function(X)
                with suppress(ValueError):  # the model has diverged
                    mutant.partial_fit(next(layouts), y)


def test_tampered_files_do_not_crash(tmp_path):
    """Loading checks the indices that kernels use; Python raises on a wrong one."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from contracts.test_damaged_files import use_tampered_files; "
        "use_tampered_files(*sys.argv[2:])"
    )
    folder = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(tmp_path), "partial_fit"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{last}: {done.stderr[-2000:]}"


def test_fuzzed_files_do_not_crash():
    """A short run of the tool without compiling: Python raises on a wrong index."""
    tool = Path(__file__).parents[2] / "tools" / "fuzz_models.py"
    done = subprocess.run(
        [sys.executable, str(tool), "60"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 findings" in done.stdout


def test_invalid_reader_settings(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    table = {
        **{"format": "csv", "dtype": "float64", "columns": ["a", "b", "y"]},
        **{"header": True, "numbers": ["a"], "categories": ["b"], "texts": []},
        **{"label": "y", "label_is_number": True, "weight": None, "delimiter": ","},
        **{"encode": "onehot", "hash_size": 8, "missing": "impute"},
        **{"means": [0.5], "values": [["u", "v"]]},
    }
    lines = {"format": "svmlight", "zero_based": False, "missing": "error"}
    lines["dtype"] = "float32"
    task = {"positive": [1.0], "negative": [0.0]}
    for good in (table, lines):
        recipe = {"input": good, "task": task, "training": {}}
        edit_header(path, lambda header, found=recipe: header.update(recipe=found))
        aucmax.load(path)
    odd = [
        *((table, {name: 7}) for name in table),
        *((table, {"means": means}) for means in ([], [1, 2], [np.nan], [10**400])),
        *((table, {"label": "a"}), (table, {"weight": "y"}), (table, {"values": []})),
        *((table, {"numbers": ["a", "a"]}), (table, {"hash_size": 1 << 40})),
        *((lines, {name: 7}) for name in lines),
    ]
    odd = [pair for pair in odd if pair[1] not in ({"means": []}, {"hash_size": 7})]
    for good, change in odd:
        recipe = {"input": good | change, "task": task}
        edit_header(path, lambda header, found=recipe: header.update(recipe=found))
        with pytest.raises(ValueError, match="damaged aucmax model file: "):
            aucmax.load(path)
    for recipe in (7, [], {}, {"input": lines}, {"input": lines, "task": 7}):
        edit_header(path, lambda header, found=recipe: header.update(recipe=found))
        with pytest.raises(ValueError, match="damaged aucmax model file: "):
            aucmax.load(path)
