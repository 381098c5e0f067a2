"""Evaluates with the moving averages of the weights."""

from typing import ClassVar

from mirrored._interrupt import InterruptGuard
from mirrored.training.callbacks.callback import Callback, Logs


class SwapEMAWeights(Callback):
    """Gives the model the averages of its weights during evaluation and prediction.

    The optimizer keeps them: it is made with `use_ema=True`. Afterwards, and where an error or an
    interrupt ends the evaluation, the model has its own weights again.

    Args:
        swap_on_epoch: Whether the model also has the averages from the end of an epoch to the start
            of the next one, as for a `ModelCheckpoint` that stands behind this callback.

    Raises:
        ValueError: At the start of training: the optimizer keeps no averages. At that of an
            evaluation: it has none yet, since nothing was trained.

    Example:
        >>> import mirrored as mr
        >>> dense = mr.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), dense])
        >>> model.compile(mr.optim.SGD(0.5, use_ema=True, ema_momentum=0.5), "mse")
        >>> swap = mr.callbacks.SwapEMAWeights()
        >>> history = model.fit([[1.0]], [[2.0]], epochs=2, callbacks=[swap], verbose=0)
        >>> float(model.evaluate([[1.0]], [[2.0]], verbose=0))
        0.0
    """

    _kept: ClassVar[tuple[str, ...]] = ("_ema_weights_in_model",)

    def __init__(self, swap_on_epoch: bool = False) -> None:
        super().__init__()
        self.swap_on_epoch = swap_on_epoch
        self._ema_weights_in_model = False

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Look whether there will be averages."""
        if not self.model.optimizer.slots.keeps_averages:
            raise ValueError(
                "SwapEMAWeights must be used when `use_ema=True` is set on the optimizer. "
                "Received: use_ema=False"
            )

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Take the averages out of the model, if they are there."""
        if self.swap_on_epoch:
            self._swap(into_model=False)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Put the averages into the model, where that was asked for."""
        if self.swap_on_epoch:
            self._swap(into_model=True)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Put the averages into the model."""
        self._swap(into_model=True)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Take them out of it."""
        self._swap(into_model=False)

    on_predict_begin, on_predict_end = on_test_begin, on_test_end
    # When the epochs are done `fit` is about to set the weights to the averages.
    _epochs_done = _let_go = on_test_end

    def _swap(self, *, into_model: bool) -> None:
        """Let the weights and the averages change places, unless they are where they should be."""
        if into_model == self._ema_weights_in_model:
            return
        slots = self.model.optimizer.slots
        pairs = slots.averages()
        if not pairs:
            raise ValueError(
                "SwapEMAWeights must be used when `use_ema=True` is set on the optimizer, and "
                f"only after its first step. Received: use_ema={slots.keeps_averages}"
            )
        with InterruptGuard(whole=True):  # All of them or none.
            for variable, average in pairs:
                value = variable.numpy()
                variable.assign(average)
                average.assign(value)
            self._ema_weights_in_model = into_model
