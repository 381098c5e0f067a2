"""Compares the copies of variables on replicas while a model is trained."""

from mirrored._numbers import as_positive
from mirrored.training.callbacks.callback import Callback, Logs
from mirrored.training.run_plan import optimizers_of


class CheckReplicas(Callback):
    """Ends `fit` with an error if replicas do not have the same weights any more.

    Before the first step, after every N-th step and after the last one, the copies of all mirrored
    variables of the model and of its optimizers are compared, bit by bit, over all workers; see
    `MirroredStrategy.check_replicas`. Copies part if one of them is assigned alone, or if a device
    computes wrong; the weights are then no longer those of one device.

    Where devices share memory, as simulated GPUs do, a recorded step computes new weights once for
    all of them. A wrong copy of a trained weight is there until the next step.

    `mr.debugging.compare_replicas` answers another question: whether a step on several replicas
    computes what it computes on one device.

    Args:
        every: After how many steps to compare, counted over the epochs of a `fit`.

    Raises:
        ValueError: `every` is no positive integer.
        ReplicasDifferError: In `fit`: copies differ. The error names the first such variable, the
            replicas, and how many steps this `fit` had taken.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> strategy = mr.MirroredStrategy()
        >>> with strategy.scope():
        ...     model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> check = mr.callbacks.CheckReplicas(every=2)
        >>> options = {"batch_size": 1, "verbose": 0, "callbacks": [check]}
        >>> _ = model.fit([[1.0]] * 4, [[1.0]] * 4, **options)
        >>> _ = strategy.experimental_local_results(model.weights[0])[1].assign([[7.0]])
        >>> try:
        ...     model.fit([[1.0]] * 4, [[1.0]] * 4, **options)
        ... except mr.errors.ReplicasDifferError as error:
        ...     error.variable, error.replicas, error.step
        ('dense/kernel:0', (1,), 0)
    """

    _kept = ("_steps_before", "_steps", "_checked")

    def __init__(self, every: int = 100) -> None:
        super().__init__()
        self.every = as_positive("every", every)
        self._steps_before = self._steps = self._checked = 0

    def steps_between(self, kind: str, steps: int) -> int:
        """Return how many steps may run between two looks at whether to compare."""
        return self._steps_until(self.every, kind, steps, CheckReplicas)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Compare the copies, and count steps from here."""
        self._steps_before = self._steps = 0
        self._check()

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Note how many steps there were in earlier epochs."""
        self._steps_before = self._steps

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Compare the copies where it is time."""
        self._steps = self._steps_before + batch + 1
        if self._steps // self.every > self._checked // self.every:
            self._check()

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Compare the copies after the last step."""
        if self._steps > self._checked:
            self._check()

    def _check(self) -> None:
        self._checked = self._steps
        slots = [optimizer.variables for optimizer in optimizers_of(self.model)]
        variables = [self.model.variables, slots]
        self.model.distribute_strategy.check_replicas(variables, step=self._steps)
