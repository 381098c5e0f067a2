"""What calls of all workers have returned that are over, for processes that start later.

A new process runs the program from its beginning, and gets the results of these calls.
"""

import pickle
from collections.abc import Callable
from typing import Any

from mirrored import _nest
from mirrored.variables import Variable

_MOST = 1 << 26  # The bytes of results that are kept.


class FinishedRuns:
    """The results of a program's runs and elastic steps that are over.

    Attributes:
        results: Each one, pickled.
        refusal: Why no process can join any more, for the log; empty: one can.
        runs_several_models: Whether different models have run.
    """

    def __init__(self) -> None:
        self.results: list[bytes] = []
        self.refusal = ""
        self.runs_several_models = False
        self._size = 0
        self._model: int | None = None  # Its identity: nothing here keeps it.
        self._is_running = False

    def run(self, workers: Any, take: Callable[[], Any], model: Any = None) -> tuple[bool, Any]:
        """Return whether a new process got a result of the others, and the result.

        Where no processes start in place of dead workers, nothing is kept.

        Args:
            workers: The workers.
            take: Takes the run.
            model: The model that runs; None: not one alone.
        """
        # Callbacks may start other runs.
        if self._is_running or workers.on_failure != "replace":
            return False, take()
        known = [] if workers.welcome is None else workers.welcome[0]
        if len(self.results) < len(known):
            self.results.append(known[len(self.results)])
            return True, pickle.loads(self.results[-1])
        self._is_running = True
        if model is not None:
            self.runs_several_models |= self._model not in (None, id(model))
            self._model = id(model)
        try:
            result = take()
        except BaseException:
            self.refusal = "a run that failed before"
            raise
        finally:
            self._is_running = False
        self._keep(result)
        return False, result

    def _keep(self, result: Any) -> None:
        if self.refusal:
            return
        if any(isinstance(leaf, Variable) for leaf in _nest.flatten(result)):
            self.refusal = "a result with variables, of which a new process has its own"
            return
        try:
            self.results.append(pickle.dumps(result))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            self.refusal = f"a result that cannot be pickled ({error})"
            return
        self._size += len(self.results[-1])
        if self._size > _MOST:
            self.refusal = f"results before of more than {_MOST >> 20} MiB"
            self.results.clear()


finished_runs = FinishedRuns()
