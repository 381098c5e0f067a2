"""Models: layers put together, with the methods that train, evaluate and predict.

A functional model is a graph of calls from inputs to outputs; a subclass has its own `call`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from mirrored import _overrides
from mirrored._absent import absent_members
from mirrored._arguments import explained
from mirrored._files import PathName
from mirrored.data.arguments import DataArguments
from mirrored.training import loop
from mirrored.training.callbacks import Callback, History
from mirrored.training.compilation import check_steps_per_execution, compile_model
from mirrored.training.configured import ConfiguredModel
from mirrored.training.run_plan import RunPlan
from mirrored.training.running_means import in_order


@explained
@absent_members("tf.keras.Model")
class Model(ConfiguredModel):
    """Layers that are trained together.

    Args:
        inputs: Where a functional model begins, as `Input` returned it, or several in nested lists,
            tuples and dicts; left out by subclasses, which define `call(self, inputs)` or
            `call(self, inputs, training=False)`.
        outputs: Where it ends, as layers and operations returned it, likewise.
        name: The name; None gives the class's name in snake case, numbered.
        dtype: The dtype of the inputs; None is that of `inputs`, or the default float.
        trainable: Whether training changes the weights.

    Attributes:
        history: The `History` of the last `fit`, one that was interrupted included; None before.
        stop_training: Set by callbacks to end `fit` after the batch that is running.
        stop_evaluating: Set by callbacks to end an evaluation so, that of `fit` included; each
            begins with False.
        stop_predicting: The same of `predict`.

    Raises:
        ValueError: Only one of `inputs` and `outputs` is given, one is no placeholder, or the
            outputs are computed from more than the inputs.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(2,))
        >>> model = mr.Model(x, mr.layers.Dense(1)(x))
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], epochs=3, verbose=0)
        >>> len(history.history["loss"])
        3
    """

    _never_called = _overrides.MODEL
    _for_itself = _overrides.MODEL_ITSELF
    _functional_name = "functional"
    _automatic = True

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int | str = "auto",
        jit_compile: bool | str | None = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Say how the model is trained. All names are checked here.

        Where a later call gives no loss, that of the call before stays, with its weights; where it
        gives neither metrics nor weighted ones, they stay.

        Args:
            optimizer: An optimizer or its name, as in "sgd"; None: none, as where the steps of the
                model's own have others.
            loss: A loss, its name, or a function of targets and outputs that returns a value an
                example, or one number: the mean over the examples that it is given. For several
                outputs a list with one each, or None; a dict by their names; or one for all.
            loss_weights: What each output's loss counts by in the sum that is minimised: numbers
                in a list or a dict like the losses'. Logs show the losses as they are.
            metrics: Metrics or their names, as in ["accuracy"]; they ignore sample weights. For
                several outputs a list with one, or a list of them, for each; or a dict by names.
            weighted_metrics: Metrics that are weighted by sample weights.
            run_eagerly: Whether Python runs for every op of every step, so that layers and losses
                can be looked into while they run. Otherwise a step is recorded once for each
                shape of its inputs and replayed: what Python does in it beside calling ops
                happens when it is recorded, and not again.
            steps_per_execution: How many steps run between two calls of callbacks' batch hooks;
                "auto": one where a callback has such hooks, else as many as the progress shown
                allows.
            jit_compile: Accepted for compatibility: steps are recorded, or with `run_eagerly` not.
            auto_scale_loss: Accepted for compatibility: it is for float16, which is not provided.

        Raises:
            ValueError: A name is unknown, or model, optimizer and metrics were made in different
                strategies' scopes.
        """
        if not isinstance(jit_compile, bool | None) and jit_compile != "auto":
            raise ValueError(
                f'`jit_compile` is True, False or "auto". Received: jit_compile={jit_compile!r}.'
            )
        check_steps_per_execution(steps_per_execution)
        compilation = compile_model(self, optimizer, loss, loss_weights, metrics, weighted_metrics)
        compilation.run_eagerly = bool(run_eagerly)
        compilation.steps_per_execution = steps_per_execution
        compilation.jit_compile = jit_compile
        self._compilation = compilation
        self._forget_steps()

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
        *,
        validate_data: bool = False,
    ) -> History:
        """Train on data. However many replicas there are, the weights come out the same.

        Data are arrays, or a `mr.data.Dataset`, a `PyDataset`, a generator or another iterable of
        global batches (x, y) or (x, y, sample_weight). Arrays are NumPy's and others', tensors,
        lists of numbers, frames of pandas or polars, and arrays in files (`np.memmap`, h5py, zarr),
        of which those larger than 64 MiB are read and shuffled block by block. Each of x, y and
        sample_weight is one array, or a list, tuple or dict of arrays, where the model takes such.

        A generator is gone through once. A dataset is iterated over again for each epoch; with
        `steps_per_epoch` an epoch goes on where the one before ended, and one that ends with the
        dataset is followed by another pass. Where data end in the middle of an epoch, that is a
        shorter one, and the last one of a generator; a warning says so. A batch that does not fit
        is an error that gives its number, and the weights are those of the step before.

        Ctrl-C ends training after the step that is running: the model is consistent, and the
        epochs so far are in `model.history`.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches.
            y: Targets of shape (examples, ...); for arrays only.
            batch_size: Examples a step, over all replicas together; for None 32, or as many as
                make `steps_per_epoch` of all. For arrays only: a dataset's batches are global
                batches already.
            epochs: The epoch to end before, counted from 0; each is one pass over the data.
            verbose: 0 shows nothing; 1 a progress bar on a terminal or in a notebook, a widget
                where the extra `notebook` is installed, and a line an epoch elsewhere; 2 lines;
                "auto" is 1.
            callbacks: Callbacks whose hooks are called, in order.
            validation_split: The part of the arrays, taken from their end, to validate on instead.
            validation_data: (x, y) or (x, y, sample_weight) to evaluate on after epochs, or a
                dataset or generator of batches.
            shuffle: Whether to take the examples of arrays in another random order each epoch.
            class_weight: A weight for each integer label.
            sample_weight: A weight for each example, of shape (examples,), or weights that
                broadcast to the losses; for arrays only.
            initial_epoch: The epoch to begin with, counted from 0.
            steps_per_epoch: How many batches make an epoch; the next epoch goes on where it ended.
                None takes all; a dataset without end needs it.
            validation_steps: How many batches to validate on; None takes all.
            validation_batch_size: As `batch_size`, for validation; None is `batch_size`.
            validation_freq: Validate after every so many epochs, or after those in a list,
                counted from 1.
            validate_data: Whether to look for NaN and infinity first, in arrays before training,
                in batches when they come. Keras has no such argument.

        Returns:
            The `History`, whose `history` has the values of each epoch by name.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: An argument is out of range, or data do not fit the model or each other.
            NonFiniteLossError: The loss became NaN or infinite; the weights are those before.
            ResourceExhaustedError: A device has not enough memory; the weights are those before.
        """
        return loop.fit(
            self._plan_of("fit"),
            DataArguments(
                use="fit",
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps=steps_per_epoch,
                class_weight=class_weight,
                shuffle=shuffle,
                validate=bool(validate_data),
            ),
            DataArguments(
                use="validation",
                x=validation_data,
                batch_size=validation_batch_size,
                default_size=batch_size,
                steps=validation_steps,
            ),
            validation_split=validation_split,
            validation_freq=validation_freq,
            initial_epoch=initial_epoch,
            epochs=epochs,
            callbacks=callbacks,
            verbose=verbose,
        )

    @overload
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        *,
        return_dict: Literal[True],
    ) -> dict[str, float]: ...

    # A number or a list of them, as the metrics are: a union would refuse `loss, accuracy = ...`.
    @overload
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
    ) -> Any: ...

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
        """Return the loss on data, and the metrics if there are any.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches, as for `fit`.
            y: Targets of shape (examples, ...); for arrays only.
            batch_size: Examples a step, over all replicas together; 32 by default. For arrays
                only.
            verbose: As for `fit`.
            sample_weight: A weight for each example, of shape (examples,), or weights that
                broadcast to the losses; for arrays only.
            steps: How many batches to evaluate; None takes all.
            callbacks: Callbacks whose hooks are called, in order.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: An argument is out of range, or data do not fit the model or each other.
        """
        plan = self._plan_of("evaluate")
        data = DataArguments(
            use="evaluate",
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
        )
        logs = loop.evaluate(plan, data, callbacks=callbacks, verbose=verbose)
        return logs if return_dict else in_order(self, logs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
    ) -> Any:
        """Return the outputs for data, joined along the first axis.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches: inputs, or
                tuples that begin with them.
            batch_size: Examples a step, over all replicas together; 32 by default. For arrays
                only.
            verbose: As for `fit`.
            steps: How many batches to predict; None takes all.
            callbacks: Callbacks whose hooks are called, in order.

        Raises:
            ValueError: An argument is out of range, or the data do not fit the model.
        """
        loop.check_context("predict")
        data = DataArguments(use="predict", x=x, batch_size=batch_size, steps=steps)
        return loop.predict(RunPlan(self), data, callbacks=callbacks, verbose=verbose)

    # ------------------------------------------------------------------ looking

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Sequence[str] | None = None,
    ) -> None:
        """Print a table of the layers, their output shapes and their numbers of parameters.

        In a notebook it is shown as one.

        Args:
            line_length: The characters of a line; None: as many as it needs.
            positions: Where each column ends, as parts of a line.
            print_fn: What is called with the whole text; None prints it.
            expand_nested: Whether layers of models among the layers have rows of their own.
            show_trainable: Whether a column says which layers are trained.
            layer_range: The names of the first and of the last layer that are shown, or patterns
                of them; None shows all.

        Raises:
            ValueError: The range fits no layers, or the lines have no room for the columns.
        """
        from mirrored.training.summary import show, summarize  # Needed here only.

        table = summarize(self, expand_nested, show_trainable, layer_range)
        show(table, table.text(line_length, positions), print_fn)

    def export(
        self,
        filepath: PathName,
        format: str | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Write what the model computes, without training, as a file of ONNX for other programs.

        Args:
            filepath: The file, wholly written or not at all.
            format: "onnx", which None is where the name ends in `.onnx`.
            verbose: Whether a line says that it is written; None does.
            input_signature: A list of the inputs' `TensorSpec`, in the structure of the arguments
                of a call; None: those of `input`, or of the first call.
            **kwargs: `opset_version`, which is 18.

        Raises:
            ImportError: The package onnx is not installed: the extra `onnx`.
            ValueError: The model has no weights yet, or this is no format.
            NotImplementedError: The format is another of Keras', or something in the model has no
                mapping to ONNX (docs/export.md). No file is written.
            OSError: The file cannot be written.
        """
        from mirrored.training.exporting import export_model  # Needed here only.

        export_model(self, filepath, format, verbose, input_signature, kwargs)
