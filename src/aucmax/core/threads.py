"""Threads, with results that do not depend on their number."""

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

Item = TypeVar("Item")
Result = TypeVar("Result")

_threads: ContextVar[int | None] = ContextVar("threads", default=None)
_entering = Lock()
_inside, _limited = 0, cast(Any, None)  # threads in the context, limits to restore


def in_threads(
    job: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield ``job(item)`` in order, with a few running at a time.

    BLAS uses one thread, so that results do not depend on the number of threads.
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
    """Start no threads in this context: the caller has its own."""
    token = _threads.set(1)
    try:
        yield
    finally:
        _threads.reset(token)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this context.

    The limit holds for the process while any thread is inside; the last one to leave
    restores what the first one found. Code that runs outside of the context meanwhile
    is slower, and its results may differ in the last bits.
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


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # slow: it searches all loaded libraries
