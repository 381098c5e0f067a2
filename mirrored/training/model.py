"""Models: layers put together, with the methods that train, evaluate, predict and store.

A functional model is a chain of layers from an input to an output; a subclass has its own `call`.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.distribute import Strategy, get_strategy
from mirrored.layers import Layer, SymbolicTensor
from mirrored.layers.shapes import Shape, as_shape, check_matches
from mirrored.layers.symbolic import trace
from mirrored.ops import Tensor
from mirrored.training import loop
from mirrored.training.callbacks import Callback, History
from mirrored.training.compilation import Compilation, compile_model
from mirrored.training.metrics import Metric
from mirrored.training.summary import summary_lines
from mirrored.training.weights_file import PathName, load_tensors, save_tensors
from mirrored.variables import Variable


class Model(Layer):
    """Layers that are trained together.

    Args:
        inputs: where a functional model begins, as `Input` returned it; left out by subclasses,
            which define `call(self, inputs)` or `call(self, inputs, training=False)`.
        outputs: where it ends, as a layer returned it.
        name: its name; None: the class's name in snake case, numbered.
        dtype: the dtype of its inputs; None: that of `inputs`, or the default float.

    Raises:
        ValueError: only one of `inputs` and `outputs` is given, there are several, or no layers
            lead from one to the other.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(2,))
        >>> model = mr.Model(x, mr.layers.Dense(1)(x))
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], epochs=3, verbose=0)
        >>> len(history.history["loss"])
        3
    """

    def __init__(
        self,
        inputs: SymbolicTensor | None = None,
        outputs: SymbolicTensor | None = None,
        name: str | None = None,
        *,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None:
        """Find the layers between inputs and outputs, if they are given."""
        if (inputs is None) != (outputs is None):
            raise ValueError(
                "A functional model has both `inputs` and `outputs`. Received: "
                f"inputs={inputs!r}, outputs={outputs!r}."
            )
        chain: list[Layer] = []
        if inputs is not None and outputs is not None:
            chain = trace(_single("outputs", outputs), _single("inputs", inputs))
            dtype = inputs.dtype if dtype is None else dtype
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self._strategy = get_strategy()
        self._compilation: Compilation | None = None
        self.history: History | None = None
        self.stop_training = False
        self._begin: SymbolicTensor | None = inputs
        self._chain = chain
        if inputs is not None and outputs is not None:
            self._input_shape, self._output_shape = inputs.shape, outputs.shape
            self._output_dtype = outputs.dtype
            self.built = True

    # ------------------------------------------------------------------ the forward function

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Where a functional model begins: a list of one."""
        return [] if self._begin is None else [self._begin]

    @property
    def layers(self) -> list[Layer]:
        """The layers, each once, in the order in which they run or were assigned."""
        begin = [] if self._begin is None else [self._begin.producer[0]]
        unique = {id(each): each for each in [*begin, *self._sublayers]}
        return [each for each in unique.values() if isinstance(each, Layer)]

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return a layer by its name or its place in `layers`.

        Raises:
            ValueError: there is none, or not exactly one of the arguments is given.
        """
        if (name is None) == (index is None):
            raise ValueError(
                f"Provide either a layer name or a layer index. Received: {name=}, {index=}"
            )
        layers = self.layers
        if index is not None and -len(layers) <= index < len(layers):
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        names = [layer.name for layer in layers]
        raise ValueError(f"No such layer: {name if index is None else index}. There are: {names}.")

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has the shape that the model was made for."""
        if self._begin is not None:
            check_matches(self.name, self._begin.shape, input_shape)

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Run the layers in order; subclasses define their own."""
        if not self._chain:
            return super().call(inputs, *args, **kwargs)
        for layer in self._chain:
            inputs = layer(inputs)
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape of the output for inputs of this shape."""
        if not self._chain:
            return super().compute_output_shape(input_shape)
        shape = as_shape(input_shape)
        for layer in self._chain:
            shape = layer.compute_output_shape(shape)
        return shape

    def build_for(self, input_shape: Shape) -> None:
        """Make the weights that are not there yet, by running the model on one example of zeros.

        Args:
            input_shape: the shape of a batch; every size but the first is known.
        """
        if self.built and self._output_shape is not None:
            return
        sizes = [size or 0 for size in as_shape(input_shape)[1:]]
        output = self(ops.zeros((1, *sizes), self.dtype))
        if not isinstance(output, Tensor):
            raise ValueError(
                f"Models have one output for now. Received: model {self.name!r} returned "
                f"a {type(output).__name__}. Return one tensor."
            )
        self._output_dtype = output.dtype

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The dtype of the outputs, and so of the targets that are compared with them."""
        return getattr(self, "_output_dtype", self.dtype)

    # ------------------------------------------------------------------ training

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self._strategy

    @property
    def optimizer(self) -> Any:
        """The optimizer, once the model is compiled."""
        return None if self._compilation is None else self._compilation.optimizer

    @property
    def loss(self) -> Any:
        """The loss, as it was given to `compile`."""
        return None if self._compilation is None else self._compilation.given_loss

    @property
    def metrics(self) -> list[Metric]:
        """The metrics, once the model is compiled and built."""
        return [] if self._compilation is None else self._compilation.all_metrics

    @property
    def metrics_names(self) -> list[str]:
        """The names of what `evaluate` returns."""
        return ["loss", *(metric.name for metric in self.metrics)]

    def compile(
        self,
        optimizer: Any,
        loss: Any = None,
        loss_weights: None = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
    ) -> None:
        """Say how the model is trained. All names are checked here.

        Args:
            optimizer: an optimizer or its name, as in "sgd".
            loss: a loss, its name, or a function of targets and outputs that returns a value an
                example.
            loss_weights: for models of several outputs, which there are none of yet.
            metrics: metrics or their names, as in ["accuracy"]; they ignore sample weights.
            weighted_metrics: metrics that are weighted by sample weights.

        Raises:
            ValueError: a name is unknown, or model, optimizer and metrics were made in different
                strategies' scopes.
        """
        if loss_weights is not None:
            raise ValueError(
                "`loss_weights` is for models of several outputs, which are not provided yet. "
                f"Received: loss_weights={loss_weights!r}."
            )
        self._compilation = compile_model(self, optimizer, loss, metrics, weighted_metrics)

    def compiled(self) -> Compilation:
        """Return what `compile` made.

        Raises:
            RuntimeError: it was not called.
        """
        if self._compilation is None:
            raise RuntimeError("You must call `compile()` before using the model.")
        return self._compilation

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Sequence[Callback] | Callback | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
    ) -> History:
        """Train on arrays. However many replicas there are, the weights come out the same.

        Ctrl-C ends training after the step that is running: the model is consistent, and the
        epochs so far are in `model.history`.

        Args:
            x: inputs of shape (examples, ...).
            y: targets of shape (examples, ...).
            batch_size: examples a step, over all replicas together; 32 by default.
            epochs: the epoch at which to end; each is one pass over the data.
            verbose: 0 shows nothing; 1 a progress bar on a terminal and a line an epoch
                elsewhere; 2 lines; "auto" is 1.
            callbacks: callbacks whose hooks are called, in order.
            validation_split: the part of the data, taken from its end, to validate on instead.
            validation_data: (x, y) or (x, y, sample_weight) to evaluate on after epochs.
            shuffle: whether to take the examples in another random order each epoch.
            class_weight: a weight for each integer label.
            sample_weight: a weight for each example, of shape (examples,).
            initial_epoch: the epoch to begin with, counted from 0.
            steps_per_epoch: how many batches make an epoch; None: all.
            validation_steps: how many batches to validate on; None: all.
            validation_batch_size: as `batch_size`, for validation; None: `batch_size`.
            validation_freq: validate after every so many epochs, or after those in a list,
                counted from 1.

        Returns:
            The `History`, whose `history` has the values of each epoch by name.

        Raises:
            RuntimeError: the model is not compiled.
            ValueError: an argument is out of range, or data do not fit the model or each other.
            NonFiniteLossError: the loss became NaN or infinite; the weights are those before.
            ResourceExhaustedError: a device has not enough memory; the weights are those before.
        """
        options = loop.FitOptions(
            batch_size=batch_size,
            epochs=epochs,
            verbose=verbose,
            callbacks=callbacks,
            validation_split=validation_split,
            validation_data=validation_data,
            shuffle=shuffle,
            class_weight=class_weight,
            sample_weight=sample_weight,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            validation_steps=validation_steps,
            validation_batch_size=validation_batch_size,
            validation_freq=validation_freq,
        )
        return loop.fit(self, x, y, options)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Return the loss on arrays, and the metrics if there are any.

        Args:
            x: inputs of shape (examples, ...).
            y: targets of shape (examples, ...).
            batch_size: examples a step, over all replicas together; 32 by default.
            verbose: as for `fit`.
            sample_weight: a weight for each example, of shape (examples,).
            steps: how many batches to evaluate; None: all.
            callbacks: callbacks whose hooks are called, in order.
            return_dict: whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them.

        Raises:
            RuntimeError: the model is not compiled.
            ValueError: an argument is out of range, or data do not fit the model or each other.
        """
        logs = loop.evaluate(
            self, x, y, sample_weight, loop.RunOptions(batch_size, verbose, steps, callbacks)
        )
        if return_dict:
            return logs
        values = list(logs.values())
        return values if len(values) > 1 else values[0]

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
    ) -> np.ndarray[Any, Any]:
        """Return the outputs for arrays, joined along the first axis.

        Args:
            x: inputs of shape (examples, ...).
            batch_size: examples a step, over all replicas together; 32 by default.
            verbose: as for `fit`.
            steps: how many batches to predict; None: all.
            callbacks: callbacks whose hooks are called, in order.

        Raises:
            ValueError: an argument is out of range, or the data do not fit the model.
        """
        return loop.predict(self, x, loop.RunOptions(batch_size, verbose, steps, callbacks))

    # ------------------------------------------------------------------ looking and storing

    def summary(self, print_fn: Callable[[str], Any] = print) -> None:
        """Print a table of the layers, their output shapes and their numbers of parameters.

        Raises:
            ValueError: the model has no weights yet.
        """
        if not self.built:
            raise ValueError(
                f"Model {self.name!r} has never been called, so its layers have no weights yet. "
                "Call it on data, or call `build` with the shape of its input."
            )
        for line in summary_lines(self):
            print_fn(line)

    def save_weights(self, filepath: PathName, overwrite: bool = True) -> None:
        """Write all weights to a safetensors file, wholly or not at all.

        Args:
            filepath: the file.
            overwrite: whether an existing file is replaced.

        Raises:
            ValueError: the model has no weights yet.
            FileExistsError: the file exists, and `overwrite` is False.
            OSError: the file cannot be written.
        """
        named = self._named_weights("save")
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(
                f"There is a file at {os.fspath(filepath)!r} already. Pass overwrite=True to "
                "replace it."
            )
        save_tensors(filepath, {key: np.asarray(each.numpy()) for key, each in named.items()})

    def load_weights(self, filepath: PathName) -> None:
        """Set all weights from a file that `save_weights` wrote, on every replica.

        Args:
            filepath: the file.

        Raises:
            ValueError: the model has no weights yet.
            FileNotFoundError: there is no such file.
            WeightsFileError: it is truncated, corrupt, of another model or format. No weight
                was changed.
        """
        named = self._named_weights("load")
        expected = {key: (each.shape, each.dtype) for key, each in named.items()}
        loaded = load_tensors(filepath, expected)
        by_variable = {id(named[key]): value for key, value in loaded.items()}
        self.set_weights([by_variable[id(each)] for each in self.weights])

    def _named_weights(self, what: str) -> dict[str, Variable]:
        """Return the weights under names that another model of the same build gives them too."""
        if not self.built:
            raise ValueError(
                f"Cannot {what} the weights of model {self.name!r}, which has none yet. Call it "
                "on data, or call `build` with the shape of its input, first."
            )
        named: dict[str, Variable] = {}
        for index, layer in enumerate(self._walk()):
            for variable in layer._own_weights():
                leaf = variable.name.removesuffix(":0").rpartition("/")[2]
                named[f"{index}.{type(layer).__name__.lower()}.{leaf}"] = variable
        return named


def _single(argument: str, value: Any) -> Any:
    """Return a lone symbolic tensor, taken out of a list of one."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list | tuple):
        return items
    if len(items) != 1:
        raise ValueError(
            f"Models have one input and one output for now. Received: {len(items)} in `{argument}`."
        )
    return items[0]
