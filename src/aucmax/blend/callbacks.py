"""scikit-learn's callbacks for AUCClassifier: a task for each fitted model.

Before scikit-learn 1.9 there are none, and ``set_callbacks`` does not exist.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aucmax.blend.crossfit import Progress

__all__ = ["CallbackSupportMixin", "model_tasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9
    CallbackSupportMixin = type("CallbackSupportMixin", (), {})

    def with_callbacks(method: Any) -> Any:
        """Return the method."""
        return method

    @contextmanager
    def model_tasks(estimator: Any, X: Any, y: Any) -> Iterator[Progress | None]:
        """Return nothing: there are no callbacks."""
        yield None

else:

    @contextmanager
    def model_tasks(estimator: Any, X: Any, y: Any) -> Iterator[Progress | None]:
        """Return a function that tells the callbacks of fitted models.

        The tree of tasks is fit, round (a repetition of the folds), model.
        """
        data = {"estimator": estimator, "X": X, "y": y}
        root = estimator._init_callback_context(max_subtasks=None)
        root.call_on_fit_task_begin(**data)
        tasks: list[Any] = []  # of the rounds
        told = 0

        def tell(name: str, done: int, total: int) -> None:
            nonlocal told
            if not tasks or done <= told:  # a round begins
                if tasks:
                    tasks[-1].call_on_fit_task_end(**data)
                tasks.append(root.subcontext("round", max_subtasks=total))
                tasks[-1].call_on_fit_task_begin(**data)
                told = 0
            for _ in range(told, done):
                model = tasks[-1].subcontext(name)
                model.call_on_fit_task_begin(**data)
                model.call_on_fit_task_end(**data)
            told = done

        yield tell
        if tasks:
            tasks[-1].call_on_fit_task_end(**data)
        root.call_on_fit_task_end(**data)
