"""Threads: a few jobs at a time, and BLAS in one thread."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from os import cpu_count
from threading import Lock
from typing import Any, TypeVar, cast

from threadpoolctl import ThreadpoolController

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


Item = TypeVar("Item")


Result = TypeVar("Result")


def in_threads(
    job: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield ``job(item)`` in order, with a few under way at a time.

    BLAS stays in the thread that calls it: then results do not depend on their number.
    """
    threads = _threads.get() or cpu_count() or 1
    if threads == 1:
        with one_blas_thread():
            yield from map(job, items)
        return
    waiting: deque[Future[Result]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        for item in items:
            if len(waiting) > threads:
                yield waiting.popleft().result()
            waiting.append(pool.submit(job, item))
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def one_thread() -> Iterator[None]:
    """Give a context in which no threads are started: who calls has some already."""
    token = _threads.set(1)
    try:
        yield
    finally:
        _threads.reset(token)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give a context in which linear algebra runs in the calling thread only.

    The setting is the process's: while any thread is inside, BLAS has one thread for
    all of them. The last to leave restores what the first has found. What runs outside
    of such a context meanwhile is slower, and may differ in the last bits.
    """
    global _inside, _limited
    with _entering:
        if not _inside:
            _limited = _controller().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if not _inside:
                _limited.restore_original_limits()


_inside, _limited = 0, cast(Any, None)  # threads in the context, and what it restores


_entering = Lock()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries
