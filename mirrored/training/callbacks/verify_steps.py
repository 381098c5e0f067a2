"""Repeats steps while a model is trained, to find devices that compute wrong."""

from collections.abc import Mapping
from typing import Any

from mirrored._numbers import as_positive
from mirrored.program import functions_run_eagerly
from mirrored.training.callbacks.callback import Callback, Logs


class VerifySteps(Callback):
    """Repeats every N-th step of `fit`, and ends it with an error if the bits differ.

    A device may compute wrong without any sign, for a moment or always. A step of mirrored has the
    same bits whenever it is repeated, so a difference shows it. Every N-th step is first taken on
    trial: its results are hashed and taken back. Then it is taken, and hashed again. Where a
    strategy has several devices of one kind, each replica of the trial runs on the next device, so
    a device that is always wrong is found too. If there is a third one, the error names the device
    that is wrong. A lone device repeats its own work, which finds errors of a moment. So do sums
    over cards by NCCL. Between cards all this is unverified: no card ran it.

    With several workers all of them repeat the same steps, each on its own devices, and all raise
    the error of the worker that is wrong, or none does.

    Weights, metrics, random numbers and logs are those of a `fit` without the callback. A step that
    is verified takes twice the time, and 2 to 3 ms per MB of weights and slots for copies and
    hashes. A copy of all that it writes is in the host's memory meanwhile. Of several cards each
    needs room for two more copies of its weights and slots, during the whole `fit`.

    Args:
        every: Which steps to repeat: those whose numbers it divides, counted over the epochs of a
            `fit`, and on from a backup in one that `BackupAndRestore` resumes.

    Raises:
        ValueError: `every` is no positive integer. In `fit`, before the first step: the model runs
            eagerly, its step calls Python, as `mr.py_function` does, or NCCL sums in an order of
            its own: use `MirroredStrategy(deterministic=True)`.
        ResourceExhaustedError: In `fit`, before the first step: a card has no room for the trial.
        StepDiffersError: In `fit`: a step differs from its repetition, and wrote nothing. The error
            names the step, the first variable that differs, and the devices.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> verify = mr.callbacks.VerifySteps(every=2)
        >>> history = model.fit([[1.0]] * 8, [[1.0]] * 8, batch_size=2, verbose=0, callbacks=verify)
    """

    def __init__(self, every: int = 1000) -> None:
        super().__init__()
        self.every = as_positive("every", every)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Count and repeat steps from here."""
        from mirrored.training.step_verification import StepVerifier  # Few runs are verified.

        model = self.model
        if model.run_eagerly or functions_run_eagerly():
            raise ValueError(
                "`VerifySteps` repeats recorded steps. Received: a model that runs eagerly. Call "
                "compile(run_eagerly=False), or train without the callback."
            )
        model.__state__.verifier = StepVerifier(self.every)

    def state_dict(self) -> dict[str, Any]:
        """Return how many steps were taken, so that a resumed run verifies those of the whole."""
        verifier = None if self.model is None else self.model.__state__.verifier
        return {"taken": 0 if verifier is None else verifier.taken}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue to count; before the run began there is nothing that counts."""
        verifier = None if self.model is None else self.model.__state__.verifier
        if verifier is not None:
            verifier.taken = state["taken"]

    def _let_go(self) -> None:
        if self.model is not None:
            self.model.__state__.verifier = None
