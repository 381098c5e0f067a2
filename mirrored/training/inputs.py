"""The data that `fit`, `evaluate` and `predict` run on, checked against the model.

All of it is checked before the first step, so bad input changes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored._contexts import without_collector
from mirrored._numbers import check_count
from mirrored.data.arguments import VALIDATION_DATA, Among, DataArguments, epochs_to_fit
from mirrored.data.arrays import Arrays, unbatched
from mirrored.data.epochs import Epochs
from mirrored.layers.building import undone_on_failure
from mirrored.layers.shapes import Shape, shapes_in
from mirrored.training.run_plan import RunPlan, kind_of

if TYPE_CHECKING:
    from mirrored.training.model import Model

_KINDS = {"fit": "train", "validation": "test", "evaluate": "test", "predict": "predict"}


def epochs_of(plan: RunPlan, data: DataArguments, stack: ExitStack) -> Epochs:
    """Return the batches of data; of a stream the first one is read.

    Args:
        plan: The plan of the run.
        data: The data.
        stack: Closes the data.
    """
    data.check()
    epochs = data.epochs(_among(plan))
    stack.callback(epochs.close)
    return epochs


def _among(plan: RunPlan) -> Among | None:
    """Return what asks the other workers for their batches; one process asks nothing."""
    if not plan.is_shared:
        return None
    from mirrored.distribute.worker_input import among_workers

    return partial(among_workers, plan.strategy)


def fit_epochs(
    plan: RunPlan,
    training: DataArguments,
    validation: DataArguments,
    validation_split: float,
    stack: ExitStack,
) -> tuple[Epochs, Epochs | None]:
    """Return what `fit` trains on and what it validates on, if it does; the model is built for it.

    Args:
        plan: The plan of the run.
        training: What to train on.
        validation: What to validate on; without `x` there is none but that of `validation_split`.
        validation_split: The part of arrays, taken from their end, to validate on instead.
        stack: Closes the data.

    Raises:
        ValueError: Data do not fit the model or each other.
    """
    trained, validated = epochs_to_fit(training, validation, validation_split, _among(plan), stack)
    prepare(plan, trained, validated, use="fit")
    # The order of the examples comes from the global seed, on any number of replicas; that of
    # arrays is taken here, once the model is built.
    trained.begin()
    return trained, validated


def epochs_to_validate(frequency: int | Sequence[int], epochs: int) -> Sequence[int]:
    """Return the epochs, counted from 1, after which to validate."""
    if isinstance(frequency, list | tuple | set):
        return [check_count("validation_freq", epoch, least=1) for epoch in frequency]
    every = check_count("validation_freq", frequency, least=1)
    return range(every, epochs + 1, every)


# ---------------------------------------------------------------------------- the model


def prepare(plan: RunPlan, epochs: Epochs, validation: Epochs | None = None, *, use: str) -> None:
    """Build the model for these data where it is not built, and make its metrics.

    Args:
        plan: The plan of the run.
        epochs: What it is about to run on; from here on with targets in the shape that the loss
            wants.
        validation: What it is validated on, if it is; likewise.
        use: What it runs: "fit", "evaluate" or "predict".

    Raises:
        ValueError: Inputs or targets do not fit the model; it is as it was.
    """
    key: Any = (use, *[_kind_of(data) for data in (epochs, validation) if data is not None])
    if key in plan.decided:  # As in an earlier run: the model is built for it.
        _check(plan, use, plan.decided[key], epochs)
        if validation is not None:
            _check(plan, "validation", plan.decided[key], validation)
        return
    compilation = plan.model.__state__.compilation
    known = None if compilation is None else compilation.outputs
    try:
        with undone_on_failure([layer for layer, _ in plan.layers]):
            form = _prepare(plan, use, epochs, validation)
    except BaseException:
        if compilation is not None:
            compilation.outputs = known
        raise
    if form is not None:
        plan.decided[key] = form


def _kind_of(data: Epochs) -> Any:
    """Return what is the same of data that a model takes alike."""
    kind = kind_of(data.example)
    return (*kind, data.example.size) if data.is_stream else kind


def _check(plan: RunPlan, use: str, form: "_InputForm", epochs: Epochs) -> None:
    epochs.check_with(partial(_checked, plan, use, epochs.is_stream, form))


def _prepare(
    plan: RunPlan, use: str, epochs: Epochs, validation: Epochs | None
) -> "_InputForm | None":
    model = plan.model
    is_custom = plan.is_custom(_KINDS[use])
    if is_custom and not (model.has_call and _takes(model, epochs.example)):
        return None  # Custom steps call other models, or this one with parts of what there is.
    form = _usable(plan, use, epochs)
    if model.built and model.__state__.output_shape is not None:
        model.check_input_shape(form.fitted)
    else:
        try:
            with without_collector(), undone_on_failure([layer for layer, _ in plan.layers]):
                model.build_for(form.fitted, form.dtypes)
        except Exception:
            if not is_custom:
                raise
            return None  # The step calls it with something else, or raises the same.
        plan.look_up()
    compilation = model.__state__.compilation
    if compilation is not None and compilation.outputs is None:
        with model.distribute_strategy.scope():
            compilation.resolve(model.output_shapes, model.output_names or None)
    _check(plan, use, form, epochs)
    if validation is not None:
        validated = _usable(plan, "validation", validation)
        _check(plan, "validation", form, validation)
        if validated.fitted != form.fitted:
            # Only running it tells whether the model takes both; after an epoch is too late.
            model.output_shapes_for(validated.fitted, validated.dtypes)
    return form


class _InputForm(NamedTuple):
    """The inputs of a batch, without their number of examples.

    Attributes:
        shapes: The shapes that they come in.
        fitted: The shapes that the model takes.
        dtypes: The dtypes that they are fed in.
    """

    shapes: Any
    fitted: Any
    dtypes: Any


def _usable(plan: RunPlan, use: str, epochs: Epochs) -> _InputForm:
    """Return the form of the inputs, which the model can use."""
    model, example = plan.model, epochs.example
    _check_targets(plan, use, epochs.is_stream, example)
    if epochs.is_stream:
        _check_batched(model, example)
    inputs = _input(model, _part(example, 0))
    shapes = _shapes(inputs)
    return _InputForm(shapes, model.fitted_shape(shapes), _dtypes(model, inputs))


def _check_targets(plan: RunPlan, use: str, is_stream: bool, arrays: Arrays) -> None:
    """Raise where there are no targets for the loss."""
    if arrays.layout.parts[1] is not None or use == "predict" or plan.is_custom(_KINDS[use]):
        return
    if is_stream:
        raise ValueError(
            f"`{use}` needs batches of (x, y) or (x, y, sample_weight). The loss needs targets. "
            "Received: a batch without targets."
        )
    advice = VALIDATION_DATA if use == "validation" else "Pass an array as `y`."
    raise ValueError(f"`{use}` needs targets to compute the loss. Received: y=None. {advice}")


def _check_batched(model: "Model", example: Arrays) -> None:
    """Raise where a stream gives single examples of what the model takes batches of."""
    if not isinstance(example.x, np.ndarray):
        return
    shape = example.x.shape
    if any(
        shape == begin.shape[1:] and model.fitted_shape(shape)[1:] != begin.shape[1:]
        for begin in model.__state__.inputs
    ):
        raise ValueError(unbatched(model.name, [shape]))


def _checked(plan: RunPlan, use: str, is_stream: bool, form: _InputForm, arrays: Arrays) -> Arrays:
    """Return the arrays in the shapes that the model and the losses want, all checked.

    Inputs in a form that the model is known to take are not checked again.
    """
    if plan.is_custom(_KINDS[use]):
        return arrays
    model = plan.model
    x, y, weights = _part(arrays, 0), _part(arrays, 1), _part(arrays, 2)
    if y is None:
        _check_targets(plan, use, is_stream, arrays)
    inputs = x = _input(model, x)
    shapes = _shapes(x)
    if shapes != form.shapes:
        model.check_input_shape(shapes)
        inputs = _reshaped(x, shapes_in(model.fitted_shape(shapes)))
    elif form.fitted != form.shapes:
        inputs = _reshaped(x, shapes_in(form.fitted))
    if y is None:
        return Arrays.of(inputs, None, weights)
    outputs = model.required_compilation().required_outputs()
    targets = outputs.flat("y", y)
    output_weights = outputs.flat("sample_weight", weights)
    shapes = [output.shape for output in outputs.outputs]
    if model.__state__.begin is None:  # Of a subclass, further axes may vary between batches.
        shapes = _output_shapes(model, inputs, shapes)
    for i, output in enumerate(outputs.outputs):
        if output.loss is not None and targets[i] is not None:
            targets[i] = output.loss.check_targets(targets[i], shapes[i])
            if output_weights[i] is not None:
                output.loss.check_weights(output_weights[i], shapes[i])
    if len(targets) == 1:
        if arrays.layout.is_plain and inputs is x and targets[0] is y:
            return arrays
        return Arrays.of(inputs, targets[0], output_weights[0])
    return Arrays.of(inputs, targets, None if weights is None else output_weights)


def _reshaped(structure: Any, shapes: Iterator[Shape]) -> Any:
    """Return a structure of arrays, which get these shapes in turn, but for their length."""

    def reshaped(array: Any) -> Any:
        return array if array is None else array.reshape(len(array), *next(shapes)[1:])

    return _nest.map_structure(reshaped, structure)


def _output_shapes(model: "Model", inputs: Any, usual: list[Shape]) -> list[Shape]:
    """Return the output shapes for these inputs; the usual ones for those it was built for."""
    shapes = _shapes(inputs)
    if shapes == model.__state__.input_shape:
        return usual
    compilation = model.required_compilation()
    key = repr(shapes)
    if key not in compilation.output_shapes:
        outputs = model.output_shapes_for(shapes, _dtypes(model, inputs))
        compilation.output_shapes[key] = list(shapes_in(outputs))
    return compilation.output_shapes[key]


# ---------------------------------------------------------------------------- structures of arrays


def _part(arrays: Arrays, number: int) -> Any:
    """Return the inputs, the targets or the weights: an array, a structure of such, or None."""
    part = arrays.layout.parts[number]
    if part is None or type(part) is int:
        return part if part is None else arrays.columns[part]
    return arrays.layout.part(number, arrays.columns)


def _input(model: "Model", x: Any) -> Any:
    """Return the inputs as the model takes them: one array where it has one input.

    Raises:
        ValueError: It has one, and they are several.
    """
    if isinstance(x, np.ndarray) or model.__state__.takes_structures:
        return x
    return _lone(x, [begin.node.callee.name for begin in model.__state__.inputs])


def _takes(model: "Model", arrays: Arrays) -> bool:
    """Whether the model could be called on the inputs, by how many they are."""
    try:
        _input(model, _part(arrays, 0))
    except ValueError:
        return False
    return True


def _lone(structure: Any, names: list[str]) -> Any:
    """Return the array of a list of one, or of a dict that has it by the input's name."""
    if isinstance(structure, list | tuple) and len(structure) == 1:
        return _lone(structure[0], names)
    if isinstance(structure, dict) and len(names) == 1 and names[0] in structure:
        return _lone(structure[names[0]], names)
    if isinstance(structure, list | tuple | dict):
        joined = "examples, join them with `numpy.stack(x)`"
        if isinstance(structure, dict):
            joined = "columns, join them with `numpy.column_stack(list(x.values()))`"
        raise ValueError(
            "`x` must be one array, because the model has one input. Received: "
            f"{_described(structure)}. If they are the {joined}."
        )
    return structure


def _described(structure: Any) -> str:
    if isinstance(structure, dict):
        return f"a dict with keys {list(structure)}"
    return f"a {type(structure).__name__} of {len(structure)} arrays"


def _shapes(structure: Any) -> Any:
    """Return an array's shape with the batch left open, or a structure of such shapes."""
    if isinstance(structure, np.ndarray):
        return (None, *structure.shape[1:])
    return _nest.map_structure(
        lambda array: None if array is None else (None, *array.shape[1:]), structure
    )


def _dtypes(model: "Model", structure: Any) -> Any:
    """Return the dtypes in which a model is fed arrays."""
    if isinstance(structure, np.ndarray):
        fed = model.fed_dtypes(structure.dtype)
        return structure.dtype if fed is None else fed
    own = _nest.map_structure(lambda array: array if array is None else array.dtype, structure)
    return _nest.map_structure(
        lambda fed, kept: kept if fed is None else fed, model.fed_dtypes(own), own
    )
