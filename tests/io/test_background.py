"""Iterating in a thread."""

import threading
import time

import pytest

from aucmax.io.background import prefetch


def threads():
    return [t for t in threading.enumerate() if t.name == "aucmax-prefetch"]


def test_prefetch_gives_the_same():
    assert list(prefetch(range(1000))) == list(range(1000))
    assert list(prefetch([], depth=1)) == []
    assert list(prefetch([None, None])) == [None, None]
    assert not threads()


def test_prefetch_raises_what_happened():
    def items():
        yield 1
        raise KeyError("that")

    received = []
    with pytest.raises(KeyError, match="that"):
        received.extend(prefetch(items()))
    assert received == [1]
    assert not threads()


def test_prefetch_keeps_its_distance():
    made = []
    items = prefetch((made.append(k) or k for k in range(100)), depth=2)
    assert next(items) == 0
    deadline = time.monotonic() + 5
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.01)
    assert made == [0, 1, 2, 3]  # one is out, two wait, one more is in the hand
    items.close()


@pytest.mark.parametrize("taken", range(6))
def test_prefetch_stops_when_closed(taken):
    closed = threading.Event()

    def items():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    some = prefetch(items(), depth=1)
    for k in range(taken):
        assert next(some) == k
    some.close()
    assert not threads()
    assert closed.is_set() == (taken > 0)  # without a first item nothing was begun


def test_prefetch_does_not_wait_for_what_never_comes():
    forever = threading.Event()

    def items():
        yield 1
        forever.wait()

    some = prefetch(items())
    assert next(some) == 1
    start = time.monotonic()
    some.close()
    assert time.monotonic() - start < 3
    assert all(thread.daemon for thread in threads())
    forever.set()
    for thread in threads():
        thread.join(5)
    assert not threads()
