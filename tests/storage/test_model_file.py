"""Model files are those of the package safetensors."""

import hashlib
import json

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save, save_file

from aucmax.storage import model_file as files


def test_files_are_those_of_the_package():
    rng = np.random.default_rng(0)
    tensors = {
        "state.b": rng.random((3, 4)),
        "coef": np.asfortranarray(rng.random((5, 2))),
        "a": rng.random((4, 6))[::2, ::-3],
        "none": np.empty((0, 7)),
        "number": np.array(1.5),
    }
    for size in range(9):  # whatever is left to the next multiple of eight
        header = json.dumps({"text": 'a "ü"\n\\' + "x" * size})
        content = b"".join(
            bytes(part) for part in files._parts(tensors, {"aucmax": header})
        )
        plain = {key: np.ascontiguousarray(value) for key, value in tensors.items()}
        plain["number"] = tensors["number"]  # the line above makes a vector of it
        assert content == save(plain, {"aucmax": header})


def test_they_are_read_again(tmp_path):
    tensors = {"a": np.arange(6.0).reshape(2, 3).T}
    path = tmp_path / "a"
    path.write_bytes(b"".join(bytes(part) for part in files._parts(tensors, {"a": ""})))
    assert np.array_equal(load_file(path)["a"], tensors["a"])


def test_what_nobody_could_read_is_not_written():
    room = files._LONGEST_HEADER - len('{"__metadata__":{"aucmax":""}}')
    header = "x" * room
    first, *_ = files._parts({}, {"aucmax": header})
    assert first == save({}, {"aucmax": header})[:8]
    with pytest.raises(SafetensorError, match="header too large"):
        save({}, {"aucmax": header + "x"})
    with pytest.raises(ValueError, match="can be read"):
        next(files._parts({}, {"aucmax": header + "x"}))


def written(tmp_path):
    path = tmp_path / "model"
    tensors = {"coef": np.arange(5.0), "state": np.ones((3, 2), order="F")}
    files.write(path, {"class": "SPAM", "text": 'a "sha256":"ü'}, tensors)
    return path, tensors


def test_a_signed_file_is_one_of_the_package(tmp_path):
    path, tensors = written(tmp_path)
    header, found = files.read(path)
    assert header["class"] == "SPAM"
    for name, array in load_file(path).items():
        assert np.array_equal(array, tensors[name])
        assert np.array_equal(found[name], tensors[name])


def test_every_flipped_bit_is_noticed(tmp_path):
    path, _ = written(tmp_path)
    content = path.read_bytes()
    for at in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match="damaged"):
            files.read(path)


def test_a_file_without_a_checksum_is_refused(tmp_path):
    path, tensors = written(tmp_path)
    header, _ = files.read(path)
    save_file(tensors, path, {"aucmax": json.dumps(header)})
    with pytest.raises(ValueError, match="no checksum"):
        files.read(path)


def test_a_header_that_is_nested_deeply(tmp_path):
    path = tmp_path / "model"
    for depth in (500, 5_000, 100_000):
        text = '{"a":' * depth + "1" + "}" * depth
        path.write_bytes(b"".join(bytes(part) for part in files._signed({}, text)))
        with pytest.raises(ValueError, match=r"nested too deeply|not an aucmax model"):
            files.read(path)


def test_arrays_of_a_type_that_numpy_has_not(tmp_path):
    path = tmp_path / "model"
    table = {
        "__metadata__": {"aucmax": "{}", "sha256": "0" * 64},
        "a": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]},
    }
    text = json.dumps(table, separators=(",", ":")).encode()
    content = len(text).to_bytes(8, "little") + text + b"ab"
    digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(content.replace(b"0" * 64, digest))
    with pytest.raises(ValueError, match=r"damaged: (?!checksum)"):
        files.read(path)
