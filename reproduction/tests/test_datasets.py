"""Named data sets: what is listed, where it is found, how it is fetched."""

import bz2
import hashlib
import json
import lzma
import os
import string
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

from aucmax.core.validation import DataWarning
from aucmax.tables.labels import Task
from aucmax_reproduction import datasets as sets
from aucmax_reproduction.datasets import load
from helpers.data import SHARED, registry_line

pytestmark = pytest.mark.filterwarnings("ignore:No checksum is known")

TRAIN = b"2 1:1.5 3:-2\n1 2:1\n1 1:3 # a comment\n"
TEST = b"2 1:0.5\n1 3:4\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder that AUCMAX_DATA names; it is empty, and so is the cache."""
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("AUCMAX_DATA", str(tmp_path / "given"))
    monkeypatch.setattr(sets, "_cache", lambda: tmp_path / "cache" / "data")
    return tmp_path / "given"


@pytest.fixture
def toy(folder, monkeypatch):
    """Return the lines of a set in two parts, which can be changed."""
    common = {"features": 4, "url_labels": "1:1 2:-1", "sha256": "0" * 64}
    lines = {
        "train": registry_line("toy", "train", rows=3, classes="-1:1 1:2", **common),
        "test": registry_line("toy", "test", rows=2, classes="-1:1 1:1", **common),
    }
    monkeypatch.setattr(
        sets, "_registry", lambda: {"toy": sets._entry([*lines.values()])}
    )
    return lines


@pytest.fixture
def server(tmp_path, toy, monkeypatch):
    """Return the folder of a server which has the toy set."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    root = tmp_path / "www"
    root.mkdir()
    (root / "toy").write_bytes(TRAIN)
    (root / "toy.t.bz2").write_bytes(bz2.compress(TEST))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = partial(Quiet, directory=root)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        toy["train"]["url"] = f"{address}/toy"
        toy["test"]["url"] = f"{address}/toy.t.bz2"
        yield root
        server.shutdown()


def put(folder, toy, part, text):
    """Write the normalised copy of a part, and enter its checksum."""
    folder.mkdir(parents=True, exist_ok=True)
    content = lzma.compress(text)
    (folder / f"toy.{part}.svm.xz").write_bytes(content)
    toy[part]["sha256"] = hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", sets.names())
def test_what_is_listed_makes_sense(name):
    entry = sets.entry(name)
    assert set(entry.parts) in ({"all"}, {"train", "test"})
    assert 0 < entry.positives < entry.rows
    assert entry.task.settled
    for which, part in entry.parts.items():
        assert part.name == (name if which == "all" else f"{name}.{which}")
        assert sum(part.classes.values()) == part.rows
        assert len(part.sha256) == 64
        assert set(part.sha256) <= set(string.hexdigits.lower())
        assert part.source
        assert part.url is None or part.url.startswith("https://")
    assert set(entry.url_labels.values()) <= set(entry.classes)


def test_rules_of_the_papers():
    rules = {name: sets.entry(name).task for name in sets.names()}
    assert rules["a9a"] == Task.of(1, -1)
    assert rules["covtype_sample"].positive == (2,)
    assert rules["news20"].positive == tuple(range(1, 11))
    assert len(rules["sector"].positive) == 52
    assert len(rules["aloi"].positive) == 500
    assert str(rules["vehicle"]) == "1 against rest"
    assert sets.entry("covtype_sample").positives == 171_466


@pytest.mark.parametrize("name", ["fourclass", "german", "glass", "svmguide4"])
def test_files_are_as_listed(name, monkeypatch):
    monkeypatch.setenv("AUCMAX_DATA", os.environ.get("AUCMAX_DATA", str(SHARED)))
    entry = sets.entry(name)
    for part in entry.parts.values():
        if sets.locate(part) is None:
            pytest.skip(f"no {part.file} in {sets.folders()}; set AUCMAX_DATA")
    data = load(name)
    assert data.X.shape == (entry.rows, entry.features)
    assert data.y.sum() == entry.positives
    found = dict(zip(*np.unique(data.labels, return_counts=True), strict=True))
    assert found == entry.classes
    assert np.isfinite(data.X.data).all()
    if "test" in entry.parts:
        test = load(f"{name}.test", dtype=np.float32)
        assert test.X.dtype == np.float32
        assert test.X.shape == (entry.parts["test"].rows, entry.features)
        np.testing.assert_array_equal(test.y, data.y[-len(test.y) :])


def test_parts_have_one_width_and_follow_each_other(toy, folder):
    put(folder, toy, "train", b"-1 1:1.5 3:-2\n1 2:1\n1 1:3\n")
    put(folder, toy, "test", b"-1 1:0.5\n1 3:4\n")
    both, train, test = load("toy"), load("toy", "train"), load("toy.test")
    assert (train.X.shape, test.X.shape) == ((3, 4), (2, 4))
    assert [data.name for data in (both, train, test)] == [
        "toy",
        "toy.train",
        "toy.test",
    ]
    stacked = np.vstack([train.X.toarray(), test.X.toarray()])
    np.testing.assert_array_equal(both.X.toarray(), stacked)
    np.testing.assert_array_equal(both.y, [False, True, True, False, True])
    np.testing.assert_array_equal(both.labels, [-1, 1, 1, -1, 1])
    other = load("toy", "train", Task.of(-1))
    np.testing.assert_array_equal(other.y, [True, False, False])


def test_rows_that_the_task_drops_are_left_out(toy, folder):
    del toy["test"]
    toy["train"]["task"] = "positive=1 negative=2 others=drop"
    toy["train"]["classes"] = "1:1 2:1 3:1"
    put(folder, toy, "train", b"2 1:1\n3 1:2\n1 1:3\n")
    data = load("toy")
    np.testing.assert_array_equal(data.X.toarray()[:, 0], [1, 3])
    np.testing.assert_array_equal(data.y, [False, True])
    np.testing.assert_array_equal(data.labels, [2, 1])


def test_the_given_folder_comes_before_the_cache(toy, folder):
    train = sets.entry("toy").parts["train"]
    assert sets.locate(train) is None
    put(sets.folders()[-1], toy, "train", b"1 1:1\n")
    assert sets.locate(train).parent == sets.folders()[-1]
    put(folder, toy, "train", b"1 1:1\n")
    assert sets.locate(train).parent == folder


def test_the_cache_is_where_the_system_says(monkeypatch, tmp_path):
    monkeypatch.delenv("AUCMAX_DATA", raising=False)
    if sys.platform != "linux":
        pytest.skip("other systems have other places")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sets.folders() == [tmp_path / "aucmax" / "data"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sets.folders() == [tmp_path / ".cache" / "aucmax" / "data"]


def test_a_damaged_file_is_an_error(toy, folder):
    put(folder, toy, "train", TRAIN)
    (folder / "toy.train.svm.xz").write_bytes(lzma.compress(TRAIN + TRAIN))
    with pytest.raises(
        ValueError, match=r"toy\.train\.svm\.xz is corrupted or another"
    ):
        load("toy", "train")


def test_unknown_names_get_a_hint():
    with pytest.raises(
        ValueError, match=r"Unknown data set 'new20'\. Did you mean news20"
    ):
        load("new20")
    with pytest.raises(ValueError, match=r"Unknown data set 'zzz'\. See datasets.csv"):
        load("zzz")
    with pytest.raises(ValueError, match="Parts: train, test"):
        load("a9a.valid")


def test_a_set_without_an_address_says_what_to_do(toy, folder):
    with pytest.raises(FileNotFoundError, match=r"toy\.train.*the moon.*AUCMAX_DATA"):
        load("toy")


def test_a_download_is_read_relabelled_and_pinned(toy, server, folder):
    reported = []
    with pytest.warns(DataWarning, match=r"No checksum is known .*/toy\. The first"):
        paths = sets.fetch("toy", progress=lambda *step: reported.append(step))
    cache = sets.folders()[-1]
    assert {path.name for path in cache.iterdir()} == {
        "toy.train.upstream.svm",
        "toy.train.upstream.svm.lock",
        "toy.test.upstream.svm.bz2",
        "toy.test.upstream.svm.bz2.lock",
    }
    assert reported[0] == (len(TRAIN), len(TRAIN))
    pin = json.loads((cache / "toy.train.upstream.svm.lock").read_text())
    assert pin["sha256"] == hashlib.sha256(TRAIN).hexdigest()
    assert pin["url"] == toy["train"]["url"]
    data = load("toy")
    np.testing.assert_array_equal(data.labels, [-1, 1, 1, -1, 1])
    assert data.X.shape == (5, 4)
    assert not list(folder.iterdir())
    paths[0].write_bytes(TRAIN.replace(b"1.5", b"2.5"))
    with pytest.raises(ValueError, match="is corrupted or another version"):
        load("toy")


def test_a_file_that_has_changed_since_is_not_trusted(toy, server):
    path = sets.fetch("toy")[0]
    path.unlink()
    assert sets.fetch("toy")[0] == path  # the same again: fine
    path.unlink()
    (server / "toy").write_bytes(TRAIN.replace(b"1.5", b"2.5"))
    with pytest.raises(
        OSError, match=r"not the expected file.*Delete .*\.lock to trust"
    ):
        load("toy")
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRAIN + TRAIN, "6 rows instead of 3; label -1 in 2 rows instead of 1"),
        (TRAIN.replace(b"3:-2", b"5:-2"), "5 features instead of 4"),
        (
            TRAIN.replace(b"2 1", b"1 1"),
            "label -1 in 0 rows instead of 1; label 1 in 3",
        ),
        (b"<html>Please log in</html>\n", "html"),
    ],
)
def test_a_download_of_something_else_is_not_kept(toy, server, text, message):
    (server / "toy").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        load("toy")
    assert not list(sets.folders()[-1].iterdir())


def test_zeros_beyond_the_width_do_no_harm(toy, server):
    (server / "toy").write_bytes(TRAIN.replace(b"3:-2", b"3:-2 9:0"))
    data = load("toy", "train")
    assert data.X.shape == (3, 4)
    np.testing.assert_array_equal(data.X.toarray()[0], [1.5, 0, -2, 0])


def test_a_download_that_was_not_read_yet_is_pinned_when_it_is(toy, server):
    paths = sets.fetch("toy")
    lock = sets._lock(paths[0])
    lock.unlink()  # as if the process had been killed before it was written
    load("toy")
    assert lock.exists()
