"""The facts that a run of `fit`, `evaluate` or `predict` looks up once, when it begins."""

from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored import _nest
from mirrored.data.arrays import Arrays
from mirrored.layers.layer import Layer, walk_with
from mirrored.ops import TensorSpec
from mirrored.ops.spec import default_float
from mirrored.optim import Optimizer
from mirrored.training.losses.values import loss_dtype
from mirrored.training.metrics import Metric
from mirrored.training.running_means import is_mean
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.training.model import Model

# The methods that a model overrides to have custom steps, by the kind of step.
_FOR_ALL = ("compute_loss", "compute_metrics", "get_metrics_result", "reset_metrics", "metrics")
_METHODS = {
    "train": ("train_step", *_FOR_ALL),
    "test": ("test_step", *_FOR_ALL),
    "predict": ("predict_step",),
}
_SETTINGS = (bool, int, float, str, type(None))

MOST_DECISIONS = 64  # That are kept from one run to the next.


class RunPlan:
    """The facts about a model that stay as they are while it runs.

    Args:
        model: The model, which is compiled but for prediction.

    Attributes:
        model: The model.
        strategy: The strategy that it runs in.
        is_shared: Whether replicas run in other processes too.
        optimizers: The optimizer of `compile`, and those in the model's attributes.
        layers: The model and the layers inside it, with the variables that are held by each.
        identity: What recorded steps depend on in addition to the batch: equal for the runs that
            may have the same.
        decided: What was decided for the inputs of such runs, by what it was decided for.
    """

    layers: list[tuple[Layer, list[Variable]]]
    identity: tuple[Any, ...]
    decided: dict[Any, Any]

    def __init__(self, model: "Model") -> None:
        self.model, self.strategy = model, model.distribute_strategy
        self.is_shared = self.strategy.is_shared
        self.look_up()

    def look_up(self) -> None:
        """Look the facts up again, after the model was built."""
        self._custom: dict[str, bool] = {}
        self._walk()
        self._identify()

    def _walk(self) -> None:
        self._was_built = self.model.built  # Else layers may get metrics and weights yet.
        self.layers, self._has_metrics = [], False
        kinds: Any = (Variable, Metric, Optimizer)
        parts: list[Any]
        for layer, parts in walk_with(self.model, kinds):
            variables = [part for part in parts if isinstance(part, Variable)]
            if len(variables) < len(parts) and any(isinstance(part, Metric) for part in parts):
                self._has_metrics = True
            if layer is self.model:
                self.optimizers = optimizers_of(self.model, parts)
            self.layers.append((layer, variables))

    def _identify(self) -> None:
        """Know this run by the objects and settings that recorded steps depend on.

        (But for the compilation's parts: with another one all traces go.)
        """
        model, state = self.model, self.model.__state__
        held: list[Any] = []
        settings: list[Any] = [model.built, state.input_shape, state.dtype, state.input_dtype]
        for layer, variables in self.layers:
            held.append(layer)
            settings.append(layer.__state__.trainable)
            for variable in variables:
                held.append(variable)
                settings.append(variable.trainable)
        traced = [id(state.compilation), *map(id, held), *settings[4:]]
        for optimizer in self.optimizers:
            for rule in optimizer.within:
                traced.append(type(rule))
                for item in vars(rule).items():
                    if isinstance(item[1], _SETTINGS):
                        traced += item
        self.identity, self.held = tuple(traced), held
        self._state = self.identity, settings
        earlier = state.traces.decisions
        self.decided = {} if earlier is None or earlier[0] != self._state else earlier[2]

    def keep(self) -> None:
        """Let later runs that are like this one have what was decided, as they have the traces.

        The objects whose ids are in the identity are kept with it, or others could have these ids.
        Of inputs that have ever new shapes all decisions are dropped from time to time.
        """
        decided = self.decided if len(self.decided) <= MOST_DECISIONS else {}
        self.model.__state__.traces.decisions = self._state, self.held, decided

    def fed_dtypes(self, kind: str, arrays: Arrays) -> list[np.dtype[Any] | None]:
        """Return the dtypes in which columns are brought to devices; None: in their own.

        Args:
            kind: The kind of step: "train", "test" or "predict".
            arrays: A batch, or others of its layout and dtypes.
        """
        columns, layout = arrays.columns, arrays.layout
        if self.is_custom(kind):
            # As in Keras: floating-point data in floatx, all others as they are.
            floatx = default_float()
            return [floatx if column.dtype == np.float64 else None for column in columns]
        model = self.model
        dtypes: list[np.dtype[Any] | None] = [None] * len(columns)
        numbers = layout.parts[0]
        own = _nest.map_structure(lambda n: n if n is None else columns[n].dtype, numbers)
        fed = _nest.flatten(model.fed_dtypes(own))
        for number, dtype in zip(_nest.flatten(numbers), fed, strict=True):
            if number is not None:
                dtypes[number] = dtype
        compared = loss_dtype(_nest.flatten(model.output_dtypes)[0])
        compilation = model.__state__.compilation
        outputs = None if compilation is None else compilation.outputs
        if outputs is not None and layout.parts[1] is not None:
            targets = _nest.flatten(layout.parts[1])
            for output, number in zip(outputs.outputs, targets, strict=True):
                if number is not None and not (output.loss and output.loss.targets_are_labels):
                    dtypes[number] = compared
        for number in layout.numbers(2):
            dtypes[number] = compared
        return dtypes

    def example_specs(self, kind: str, arrays: Arrays) -> tuple[TensorSpec, ...]:
        """Return the shapes and dtypes that the columns of an example are brought to devices in.

        Args:
            kind: The kind of step.
            arrays: A batch, or others of its shapes but for the first axis.
        """
        key = kind, self.is_custom(kind), default_float(), kind_of(arrays)
        specs = self.decided.get(key)
        if specs is None:
            pairs = zip(arrays.columns, self.fed_dtypes(kind, arrays), strict=True)
            specs = tuple([TensorSpec(c.shape[1:], dtype or c.dtype) for c, dtype in pairs])
            self.decided[key] = specs
        return specs

    def is_custom(self, kind: str) -> bool:
        """Return whether a step of a kind is the model's own, or updates metrics of its own.

        It is too where `compile` was called without a loss.

        Args:
            kind: "train", "test" or "predict".
        """
        if kind not in self._custom:
            if not self._was_built:
                self._walk()
            self._custom[kind] = self._overrides(kind) or (
                kind != "predict" and self._has_custom_parts()
            )
        return self._custom[kind]

    def _overrides(self, kind: str) -> bool:
        cls, names = type(self.model), _METHODS[kind]
        if not vars(self.model).keys().isdisjoint(names):
            return True
        return any([getattr(cls, name) is not getattr(cls.__declaring__, name) for name in names])

    def _has_custom_parts(self) -> bool:
        compilation = self.model.required_compilation()
        if not compilation.has_loss:
            return True  # Then there is what layers add: whether they do shows in the step.
        if self._has_metrics:
            return True
        metrics = compilation.given[2:]
        return metrics != (None, None) and not all(map(is_mean, _nest.flatten(metrics)))


def optimizers_of(model: Any, parts: list[Any] | None = None) -> list[Optimizer]:
    """Return the optimizers of a model: that of `compile`, and those in its attributes.

    Args:
        model: The model.
        parts: The parts that its attributes hold, optimizers among them; None looks them up.
    """
    compiled = model.optimizer
    parts = next(walk_with(model, Optimizer))[1] if parts is None else parts
    held = [part for part in parts if isinstance(part, Optimizer) and part is not compiled]
    return held if compiled is None else [compiled, *held]


def kind_of(arrays: Arrays) -> tuple[Any, ...]:
    """Return the layout, and the shapes but for the first axis and the dtypes of the columns.

    Args:
        arrays: A batch, or others of its kind.
    """
    kind: list[Any] = [arrays.layout]
    for column in arrays.columns:
        kind += (column.shape[1:], column.dtype)
    return tuple(kind)
