"""Iteration in a background thread."""

from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, TypeVar, overload

T = TypeVar("T")


@overload
def prefetch(items: Iterable[T], *, depth: int = 1) -> Iterator[T]: ...
@overload
def prefetch(items: Iterable[T], patience: float) -> Iterator[T | None]: ...
def prefetch(
    items: Iterable[Any], patience: float | None = None, depth: int = 1
) -> Iterator[Any]:
    """Iterate in a background thread, at most ``depth`` items ahead.

    Yield None after each ``patience`` seconds without an item. Exceptions of ``items``
    are raised here. Closing this iterator stops the thread, which then closes
    ``items``.
    """
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
                more, item = results.get(timeout=patience)
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
        while not results.empty():  # make room for a thread that waits in put
            results.get_nowait()
        thread.join(timeout=1.0)  # do not wait longer: it may be reading a pipe
