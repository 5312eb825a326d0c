"""Iterators that run in a background thread."""

from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, TypeVar, cast

T = TypeVar("T")


def prefetch(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """Iterate in a thread of its own, which is at most ``depth`` items ahead.

    What ``items`` raises is raised here. Closing this iterator stops the thread, which
    then closes ``items``.
    """
    for item in ticking(items, None, depth):
        yield cast(T, item)


def ticking(
    items: Iterable[T], seconds: float | None, depth: int = 1
) -> Iterator[T | None]:
    """Iterate as :func:`prefetch` does; give None when nothing has come for long."""
    results: Queue[tuple[bool, Any]] = Queue(depth)
    stopped = Event()
    iterator = iter(items)

    def work() -> None:
        try:
            for item in iterator:
                results.put((True, item))
                if stopped.is_set():
                    return
            last = None
        except BaseException as error:
            last = error
        finally:
            getattr(iterator, "close", lambda: None)()
        results.put((False, last))

    thread = Thread(target=work, name="aucmax-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            try:
                more, item = results.get(timeout=seconds)
            except Empty:
                yield None
                continue
            if not more:
                break
            yield item
            del item  # it may be large, and the consumer may be done with it
        if item is not None:
            raise item
    finally:
        stopped.set()
        while not results.empty():  # a thread that waits for room finds it
            results.get_nowait()
        thread.join(timeout=1.0)  # not for ever: it may be waiting for a pipe
