"""Blocks of lines: files of any kind, packing and size."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from aucmax.core.validation import DataWarning
from aucmax.io import compression as streams
from aucmax.io import text
from aucmax.io.batch import Position
from aucmax.io.open_data import open_data
from aucmax.io.text import Text
from helpers.commands import invoke


def zstd_compress(data):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd_compress,
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 64)


def some_lines(n=200, seed=0, longest=40):
    """Return text with empty lines, long ones and bytes of all kinds."""
    rng = np.random.default_rng(seed)
    lines = []
    for size in rng.integers(0, longest, n):
        line = rng.integers(0, 256, size).astype(np.uint8).tobytes()
        lines.append(line.replace(b"\n", b"") + rng.choice([b"\n", b"\r\n"]))
    return b"".join(lines)


def write(path, data):
    path.write_bytes(data)
    return str(path)


def together(blocks):
    return b"".join(block.data.tobytes() for block in blocks)


def plain(blocks):
    return [(b.data.tobytes(), b.file, b.start, b.end, b.done) for b in blocks]


def test_blocks_are_whole_lines(tmp_path, small_blocks):
    data = some_lines()
    path = write(tmp_path / "a", data)
    source = Text(path)
    blocks = list(source.blocks())
    assert source.files == [path]
    assert source.size == len(data)
    assert together(blocks) == data
    assert blocks[0].start == Position()
    assert blocks[-1].done == len(data)
    done = b""
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        assert block.data[-1] == ord("\n")
        assert block.start == Position(0, len(done), done.count(b"\n"))
        done += block.data.tobytes()
        assert after is None or block.end == after.start
    assert max(block.data.size for block in blocks) <= 64
    assert min(block.data.size for block in blocks[:-1]) > 64 - 42


@pytest.mark.parametrize("longest", [30, 300])  # 300: lines longer than a block
def test_reading_goes_on_anywhere(tmp_path, small_blocks, longest):
    paths = [
        write(tmp_path / "a", some_lines(50, 1, longest) + b"no end"),
        write(tmp_path / "b", b""),
        write(tmp_path / "c.gz", gzip.compress(some_lines(50, 2, longest))),
    ]
    source = Text(paths)
    blocks = list(source.blocks())
    assert {block.file for block in blocks} == {paths[0], paths[2]}
    for k, block in enumerate(blocks):
        rest = plain(source.blocks(block.end))
        expected = plain(blocks[k + 1 :])
        assert [r[:4] for r in rest] == [e[:4] for e in expected]
    assert list(source.blocks(blocks[-1].end)) == []
    assert blocks[-1].done == source.size


def test_borders_do_not_depend_on_how_bytes_arrive(tmp_path, small_blocks):
    data = some_lines(300, 3, 150)
    expected = [b.data.tobytes() for b in Text(write(tmp_path / "a", data)).blocks()]
    read_end, write_end = os.pipe()

    def trickle():
        with os.fdopen(write_end, "wb", buffering=0) as pipe:
            for k in range(0, len(data), 13):
                pipe.write(data[k : k + 13])

    thread = threading.Thread(target=trickle)
    thread.start()
    source = Text(f"/dev/fd/{read_end}")
    assert source.size is None
    assert [block.data.tobytes() for block in source.blocks()] == expected
    thread.join()
    os.close(read_end)


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("named", [True, False])
def test_packed_is_plain(tmp_path, small_blocks, kind, named):
    data = some_lines(500, 4)
    pack = PACKERS[kind]
    path = write(tmp_path / (f"a.{kind}" if named else "a"), pack(data))
    source = Text(path)
    expected = Text(write(tmp_path / "plain", data)).blocks()
    blocks = list(source.blocks())
    assert [b[0].tobytes() for b in blocks] == [b[0].tobytes() for b in expected]
    assert source.size == blocks[-1].done == os.path.getsize(path)
    # Members one after the other, an empty one among them, as from cat and pigz.
    third = len(data) // 3
    parts = [data[:third], b"", data[third:]]
    path = write(tmp_path / "members", b"".join(pack(part) for part in parts))
    assert together(Text(path).blocks()) == data
    if kind in ("gz", "xz"):  # padding
        write(tmp_path / "members", pack(parts[0]) + b"\0" * 8 + pack(parts[2]))
        assert together(Text(path).blocks()) == data


@pytest.mark.parametrize("kind", PACKERS)
def test_incomplete_or_damaged_files(tmp_path, kind):
    data = some_lines(3000, 5)
    packed = PACKERS[kind](data)
    path = write(tmp_path / f"a.{kind}", packed[: len(packed) // 2])
    with pytest.raises(OSError, match=rf"a\.{kind}.*incomplete") as caught:
        list(Text(path).blocks())
    assert f"byte {len(packed) // 2}," in str(caught.value)
    for at in (len(packed) // 3, len(packed) // 2, len(packed) - 6):
        damaged = bytearray(packed)
        damaged[at : at + 4] = bytes(255 - byte for byte in damaged[at : at + 4])
        write(tmp_path / f"a.{kind}", damaged)
        with pytest.raises(OSError, match=rf"a\.{kind}: the .* data are corrupted"):
            list(Text(path).blocks())
    write(tmp_path / f"a.{kind}", packed + b"something else that follows")
    with pytest.raises(OSError, match=rf"a\.{kind}: the .* data are corrupted"):
        list(Text(path).blocks())
    for content in (b"1 1:1\n", b""):
        write(tmp_path / f"a.{kind}", content)
        with pytest.raises(OSError, match=rf"a\.{kind}: no valid .* data"):
            list(Text(path).blocks())


def test_what_is_in_a_file_counts(tmp_path):
    path = write(tmp_path / "a.gz", lzma.compress(b"hello\n"))
    assert together(Text(path).blocks()) == b"hello\n"


def test_little_text_in_few_bytes_takes_little_memory(tmp_path):
    path = write(tmp_path / "a.xz", lzma.compress(b"1 1:1\n" * 10_000_000, preset=0))
    tracemalloc.start()
    size = sum(block.data.size for block in Text(path).blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 60_000_000
    assert peak < 6 * text.BLOCK


def test_folders_and_patterns(tmp_path):
    for name in ("b", "a", ".hidden", "c[1]", "d"):
        write(tmp_path / name, name.encode())
    (tmp_path / "folder").mkdir()
    names = [str(tmp_path / name) for name in ("a", "b", "c[1]", "d")]
    assert Text(str(tmp_path)).files == names
    assert Text(tmp_path).files == names
    assert Text([str(tmp_path / "[ab]"), names[3]]).files == [*names[:2], names[3]]
    assert Text(str(tmp_path / "*")).files == names
    inside = write(tmp_path / "folder" / "e", b"e")
    assert Text(str(tmp_path / "**" / "[ae]")).files == [names[0], inside]
    assert Text(names[2]).files == [names[2]]  # a file of that name, not a pattern
    assert together(Text([names[1], names[0]]).blocks()) == b"ba"
    positions = [block.end for block in Text(names).blocks()]
    assert positions == [
        Position(k, len(n), 1) for k, n in enumerate(["a", "b", "c[1]", "d"])
    ]


def test_what_is_not_there(tmp_path):
    for path, message in {
        tmp_path / "none": "no such file",
        tmp_path / "none*": "no file matches this pattern",
        tmp_path: "the folder has no files",
    }.items():
        with pytest.raises(FileNotFoundError, match=message) as caught:
            Text(str(path))
        assert str(path) in str(caught.value)
    with pytest.raises(ValueError, match="at least one"):
        Text([])
    with pytest.raises(ValueError, match="once"):
        Text(["-", "-"])
    with pytest.raises(ValueError, match="file number 2: there are only 1"):
        next(Text("-").blocks(Position(1)))
    source = Text(write(tmp_path / "gone", b"a\n"))
    (tmp_path / "gone").unlink()
    with pytest.raises(FileNotFoundError, match="gone"):
        list(source.blocks())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_became_shorter(tmp_path, pack):
    source = Text(write(tmp_path / "a", pack(b"a\n" * 100)))
    with pytest.raises(ValueError, match=r"a: .*byte 500.* only 200"):
        list(source.blocks(Position(0, 500, 250)))


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, small_blocks, pack):
    data = some_lines(100, 6)
    monkeypatch.setattr(sys, "stdin", Stdin(pack(data)))
    source = Text("-")
    assert source.files == ["-"]
    assert source.size is None
    blocks = list(source.blocks())
    assert together(blocks) == data
    assert blocks[-1].done == len(pack(data))
    # The same text piped in again is read on from anywhere.
    monkeypatch.setattr(sys, "stdin", Stdin(pack(data)))
    assert together(Text("-").blocks(blocks[3].end)) == together(blocks[4:])
    with pytest.raises(ValueError, match="standard input is a pipe and can be read"):
        next(source.blocks())


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_look_at_a_pipe_loses_nothing(monkeypatch, small_blocks, pack):
    data = some_lines(100, 7)
    for step in (3, 5000):
        monkeypatch.setattr(sys, "stdin", FromPipe(pack(data), step))
        source = Text("-")
        seen = source.beginning()
        assert data.startswith(seen)
        assert len(seen) > 0
        assert source.beginning() == seen
        assert together(source.blocks()) == data


def test_byte_order_marks(tmp_path, small_blocks):
    data = b"\xef\xbb\xbf" + b"0123456789\n" * 20
    source = Text(write(tmp_path / "a", data))
    blocks = list(source.blocks())
    assert together(blocks) == data[3:]
    assert blocks[0].end == Position(0, 3 + 5 * 11, 5)
    assert together(source.blocks(blocks[0].end)) == together(blocks[1:])
    assert together(Text(write(tmp_path / "a", b"\xef\xbb\xbf")).blocks()) == b""
    # Only at the start of a file.
    assert together(Text(write(tmp_path / "a", b"\n" + data)).blocks()) == b"\n" + data
    write(tmp_path / "a", "1 1:1\n".encode("utf-16"))
    with pytest.raises(ValueError, match=r"a: .*UTF-16.*iconv"):
        list(source.blocks())


def test_a_line_without_end(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 1 << 10)
    fits = b"ab\n" + b"x" * 1000 + b"\n"
    assert together(Text(write(tmp_path / "a", fits)).blocks()) == fits
    write(tmp_path / "a", b"ab\n" + b"x" * 3000 + b"\n")
    with pytest.raises(ValueError, match=r"a: .*byte 3 .*longer than 1024 bytes"):
        list(Text(str(tmp_path / "a")).blocks())


class Feed:
    """A pipe as standard input, and the end to write to."""

    def __init__(self, monkeypatch):
        out, self._into = os.pipe()
        monkeypatch.setattr(sys, "stdin", open(out, "rb", buffering=0))  # noqa: SIM115
        sys.stdin.buffer = sys.stdin
        self.write = lambda data: os.write(self._into, data)
        self.close = lambda: os.close(self._into)


class FromPipe:
    """Standard input with what a pipe would give, piece by piece."""

    def __init__(self, data, step):
        self.buffer, self._data, self._step = self, io.BytesIO(data), step

    def readinto(self, view):
        return self._data.readinto(view[: self._step])


def test_blocks_of_a_pipe_are_small_at_first(monkeypatch):
    """How the bytes come does not matter, and from any block's end it is the same."""
    monkeypatch.setattr(text, "BLOCK", 1000)
    monkeypatch.setattr(text, "_FIRST", 100)
    data = some_lines(1000)
    expected = None
    for step in (7, 5000):
        monkeypatch.setattr(sys, "stdin", FromPipe(data, step))
        blocks = plain(Text("-").blocks())
        assert expected is None or blocks == expected
        expected = blocks
    sizes = [len(block[0]) for block in blocks]
    assert max(sizes[:2]) <= 100
    assert max(sizes) > 900
    for k in (1, 3, 9):
        monkeypatch.setattr(sys, "stdin", FromPipe(data, 11))
        rest = plain(Text("-").blocks(blocks[k - 1][3]))
        assert rest == blocks[k:]


@pytest.mark.skipif(os.name != "posix", reason="nobody can tell what a pipe has")
def test_lines_come_at_once_for_who_asks(monkeypatch):
    monkeypatch.setattr(streams, "_SOON", 0.01)
    feed = Feed(monkeypatch)
    feed.write(b"the first line\nand ha")
    blocks = Text("-").blocks(prompt=True)
    assert next(blocks).data.tobytes() == b"the first line\n"
    feed.write(b"lf")  # a block would wait, so a thread writes the rest
    later = threading.Timer(0.05, feed.write, (b" a line\nmore\n",))
    later.start()
    block = next(blocks)
    assert block.data.tobytes() == b"and half a line\nmore\n"
    assert block.start == Position(0, 15, 1)
    assert block.end == Position(0, 36, 3)
    feed.write(b"no end")
    feed.close()
    assert next(blocks).data.tobytes() == b"no end"
    assert next(blocks, None) is None


def test_who_asks_gets_all_lines(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 300)
    data = some_lines(500)
    for step in (1, 50, 5000):
        monkeypatch.setattr(sys, "stdin", FromPipe(data, step))
        assert together(Text("-").blocks(prompt=True)) == data


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_file_that_changes_while_it_is_read(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 500)
    path = tmp_path / "a"
    path.write_bytes(pack(some_lines(500)))
    source = Text(str(path))
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + pack(b"one more\n"))
    with pytest.warns(DataWarning, match=rf"it had {size:,} bytes, and .* were read"):
        assert together(source.blocks()).endswith(b"one more\n")
    path.write_bytes(pack(some_lines(200)))
    with pytest.raises(OSError, match=rf"changed while .* it had {size:,} bytes"):
        together(source.blocks())


@pytest.mark.parametrize("format", ["svmlight", "csv", "jsonl"])
def test_empty_standard_input_is_told_alike_by_all_readers(format, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(b""))
    with pytest.raises(ValueError, match="standard input is empty: no line arrived"):
        list(open_data(["-"], format=format).batches())


@pytest.mark.parametrize(
    ("format", "data"), [("csv", "a,b\n"), ("svmlight", "# comment\n")]
)
def test_a_line_without_a_row_is_not_empty_input(format, data, tmp_path):
    told = invoke(
        "train", "-", "-o", tmp_path / "m", "--input", f"format={format}", input=data
    )
    assert "Error: No rows in -" in told.stderr
    told = invoke(
        "train", "-", "-o", tmp_path / "m", "--input", f"format={format}", input=""
    )
    assert told.stderr == (
        "Error: standard input is empty: no line arrived. Check the command before the "
        "pipe.\n"
    )
