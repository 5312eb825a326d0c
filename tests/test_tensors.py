"""Model files are those of the package safetensors."""

import json

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from aucmax import tensors as files


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
        content = b"".join(bytes(part) for part in files._parts(tensors, header))
        plain = {key: np.ascontiguousarray(value) for key, value in tensors.items()}
        plain["number"] = tensors["number"]  # the line above makes a vector of it
        assert content == save(plain, {"aucmax": header})


def test_they_are_read_again(tmp_path):
    tensors = {"a": np.arange(6.0).reshape(2, 3).T}
    path = tmp_path / "a"
    path.write_bytes(b"".join(bytes(part) for part in files._parts(tensors, "")))
    assert np.array_equal(load_file(path)["a"], tensors["a"])


def test_what_nobody_could_read_is_not_written():
    room = files._LONGEST_HEADER - len('{"__metadata__":{"aucmax":""}}')
    header = "x" * room
    first, *_ = files._parts({}, header)
    assert first == save({}, {"aucmax": header})[:8]
    with pytest.raises(SafetensorError, match="header too large"):
        save({}, {"aucmax": header + "x"})
    with pytest.raises(ValueError, match="nobody reads more"):
        next(files._parts({}, header + "x"))
