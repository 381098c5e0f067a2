"""What all metrics share: variables that replicas add to on their own, and one result of all."""

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from mirrored import _nest, _overrides, ops
from mirrored._absent import absent_members
from mirrored._logging import logger
from mirrored._naming import name_scope, snake_case
from mirrored._tracebacks import shorten
from mirrored._types import DTypeLike, Identifier
from mirrored.distribute import (
    DistributedVariable,
    SyncOnReadVariable,
    get_replica_context,
    get_strategy,
)
from mirrored.distribute.global_batch import assumed_replicas, global_batch
from mirrored.distribute.on_read_variables import writes_once, writing_once
from mirrored.layers import initializers
from mirrored.layers.weights import find
from mirrored.program.variable_access import room_in_force
from mirrored.serialization.constructor_arguments import Configured, arguments_of
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization
from mirrored.variables.tracking import Part
from mirrored.variables.variable import mode_of


@absent_members("tf.keras.metrics.Metric")
class Metric(Part, _overrides.Subclassable, Configured):
    """Base of the metrics: a subclass makes variables, adds to them, and says what they result in.

    It is made in the scope of its model's strategy. A subclass of the user's that `compile` is
    given is updated once per global batch: the replicas' targets, predictions and weights are
    gathered on the host, so that it gives what one device gives.

    In custom loops each replica updates it with its part of the batch, without waiting for
    the others; the result is that of all together, in replicas too, where these meet for it. There
    `update_state` should add sums over examples to the variables: then any number of replicas gives
    what one gives.

    Args:
        dtype: The dtype of variables that are made without one, or a policy of layers; None takes
            floatx.
        name: The name in logs and history; None takes that of the class.

    Attributes:
        name: The name in logs and history.

    Raises:
        TypeError: `dtype` is none that tensors have.

    Example:
        >>> import mirrored as mr
        >>> class Positives(mr.metrics.Metric):
        ...     def __init__(self, name="positives", **kwargs):
        ...         super().__init__(name=name, **kwargs)
        ...         self.count = self.add_weight(name="count", initializer="zeros")
        ...
        ...     def update_state(self, y_true, y_pred, sample_weight=None):
        ...         found = mr.cast(mr.greater(y_pred, 0.5), self.dtype)
        ...         self.count.assign_add(mr.reduce_sum(found))
        ...
        ...     def result(self):
        ...         return self.count
        >>> metric = Positives()
        >>> metric.update_state([1.0, 0.0, 1.0], [0.9, 0.8, 0.1])
        >>> float(metric.result())
        2.0
    """

    # "up" where more is better, "down" where less is: callbacks that look for the best ask for it.
    _direction: str | None = None
    _is_custom: ClassVar[bool] = False  # Whether a user defined its update or its result.
    _kept_otherwise: ClassVar[Collection[str]] = ()  # Arguments that are no attributes.

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have ``result`` see what all replicas have together."""
        super().__init_subclass__(**kwargs)
        result = vars(cls).get("result")
        if callable(result) and not hasattr(result, "_of_all_replicas"):
            type.__setattr__(cls, "result", _of_all_replicas(result))
        if not cls.__module__.startswith("mirrored."):
            custom = cls._is_custom or callable(result) or "update_state" in vars(cls)
            type.__setattr__(cls, "_is_custom", custom)
        if vars(cls).keys() & {"_is_custom", "_mixes_examples"}:
            type.__setattr__(cls, "update_state", _reported(cls.update_state))

    def __init__(self, dtype: DTypeLike | None = None, name: str | None = None) -> None:
        self.name = name or snake_case(type(self).__name__)
        own_dtype = ops.floatx() if dtype is None else getattr(dtype, "compute_dtype", dtype)
        self._dtype = ops.as_dtype(own_dtype)  # That of a layer's policy, too.
        # Training refuses a metric that was made for another strategy.
        self._strategy = get_strategy()
        self._added: list[Variable] = []

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of variables that are made without one."""
        return self._dtype

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a metric like it, by name, as plain values.

        A subclass adds its own to those of `super().get_config()`.
        """
        own = arguments_of(self, without=("name", "dtype", *self._kept_otherwise))
        return {"name": self.name, "dtype": self._dtype.name, **own}

    def add_variable(
        self,
        shape: Sequence[int],
        initializer: Identifier | None,
        dtype: DTypeLike | None = None,
        aggregation: VariableAggregation | str | None = "sum",
        name: str | None = None,
    ) -> Variable:
        """Make a variable of the metric's state: a copy a replica, which are put together on reads.

        Args:
            shape: Its shape, every size known.
            initializer: What it starts as: a name, a number's initializer, or a function of shape
                and dtype; None is "glorot_uniform", as in Keras.
            dtype: Its dtype; None takes the metric's.
            aggregation: How the replicas' copies become one: "sum", "mean" or
                "only_first_replica".
            name: Its name within the metric; None numbers it.

        Raises:
            ValueError: An unknown initializer or aggregation.
        """
        wanted = self._dtype if dtype is None else ops.as_dtype(dtype)
        room = room_in_force()
        if room is not None:
            room.take(self.name, math.prod(shape) * wanted.itemsize, "metrics")
        make: Any = initializers.get("glorot_uniform" if initializer is None else initializer)
        with name_scope(""):  # As Keras' objects, it has names of its own.
            variable = Variable(
                lambda: make(tuple(shape), dtype=wanted),
                dtype=wanted,
                trainable=False,
                name=f"{self.name}/{name or f'variable_{len(self._added)}'}",
                synchronization=VariableSynchronization.ON_READ,
                aggregation=mode_of(VariableAggregation, aggregation),
            )
        self._added.append(variable)
        return variable

    def add_weight(
        self,
        shape: Sequence[int] = (),
        initializer: Identifier | None = None,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        *,
        aggregation: VariableAggregation | str | None = "sum",
        synchronization: VariableSynchronization | str | None = "on_read",
    ) -> Variable:
        """Make a variable whose copies are added up; see `add_variable`.

        Args:
            shape: Its shape.
            initializer: What it starts as.
            dtype: Its dtype.
            name: Its name within the metric.
            aggregation: How the replicas' copies become one.
            synchronization: "on_read": a metric's copies are put together when they are read.

        Raises:
            ValueError: An unknown initializer or mode, or another synchronization.
        """
        mode = mode_of(VariableSynchronization, synchronization)
        if mode is not VariableSynchronization.ON_READ:
            raise ValueError(
                "A metric's copies of a variable are reduced when they are read. Received: "
                f'synchronization={synchronization!r}. Use "on_read", or leave it out.'
            )
        return self.add_variable(shape, initializer, dtype, aggregation, name)

    @property
    def variables(self) -> list[Variable]:
        """The metric's variables, and those of metrics in its attributes."""
        own = find(vars(self).values(), Variable, self)
        parts = [own, *(metric.variables for metric in find(vars(self).values(), Metric, self))]
        return list({id(variable): variable for part in parts for variable in part}.values())

    def _mixes_examples(self, y_true: Any, y_pred: Any) -> bool:
        """Return whether an example's part of the result depends on other examples of the batch.

        Then shards do not add up to their batch: in `fit` they are gathered.

        Args:
            y_true: The targets, of a shard.
            y_pred: The predictions.
        """
        return False

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch, or in a replica its part of one; most are given targets and predictions.

        Args:
            *args: The subclass says which.
            **kwargs: The subclass says which.
        """
        raise NotImplementedError(
            f"The metric {type(self).__name__} has no `update_state`. Define `update_state(self, "
            "y_true, y_pred, sample_weight=None)`, which adds to variables of `add_weight`, and "
            "`result(self)`."
        )

    def result(self) -> Any:
        """Return the value since the last reset, or a dict of values by name.

        In a replica, which then waits for the others, it is that of all of them too.
        """
        raise NotImplementedError(
            f"The metric {type(self).__name__} has no `result`. Define `result(self)`, which "
            "returns one number, or a dict of numbers, computed from its variables."
        )

    def reset_state(self) -> None:
        """Forget all batches; in a replica those that it added."""
        for variable in self.variables:
            variable.assign(ops.zeros(variable.shape, variable.dtype))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and return the result so far."""
        try:
            self.update_state(*args, **kwargs)
            return self.result()
        except Exception as error:
            shorten(error)
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def add(variable: Variable, value: Any) -> None:
    """Add to a variable whose copies are added up: in a replica to its own copy.

    Args:
        variable: The variable.
        value: What is added; that of a replica without examples is not.
    """
    if isinstance(variable, SyncOnReadVariable) and not variable.counts:
        return
    # Outside replicas the first one's copy gets it: it is the sum that counts.
    if isinstance(variable, SyncOnReadVariable) and variable.is_kept_outside:
        with writing_once():
            variable.assign_add(ops.cast(value, variable.dtype))
        return
    copy = variable
    if isinstance(variable, DistributedVariable) and not writes_once():
        copy = variable.local()
    copy.assign_add(ops.cast(value, variable.dtype))


_warned: WeakSet[type[Metric]] = WeakSet()


def _mixes(metric: Metric, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the arguments of an update make a metric one of the whole batch."""
    named = [kwargs[name] for name in ("y_true", "y_pred") if name in kwargs]
    pair = [ops.convert_to_tensor(tensor) for tensor in (*args[:2], *named)]
    return len(pair) == 2 and metric._mixes_examples(*pair)


def _reported(update: Any) -> Any:
    """Return `update_state` made to say once of a class that replicas call it.

    Of a class of the library it says so where shards do not add up to their batch.
    """

    @functools.wraps(update)
    def run(self: Metric, *args: Any, **kwargs: Any) -> Any:
        context, cls = get_replica_context(), type(self)
        is_one_of_several = context is not None and context.num_replicas_in_sync > 1
        is_new = is_one_of_several and assumed_replicas() is None and cls not in _warned
        if is_new and (self._is_custom or _mixes(self, args, kwargs)):
            _warned.add(cls)
            logger.warning(
                "The metric %r (a %s) is updated once per replica, with a part of the batch, and "
                "the results are added, as in TensorFlow. This equals one device only if "
                "`update_state` adds sums over examples. Pass the metric to `compile` to update it "
                "once per batch.",
                self.name,
                cls.__name__,
            )
        return update(self, *args, **kwargs)

    return run


def _of_all_replicas(result: Any) -> Any:
    """Return a metric's `result` made to read, in a replica, what all of them have together."""

    @functools.wraps(result)
    def run(self: Metric) -> Any:
        with SyncOnReadVariable.reading_totals(self.variables):
            # A variable's value is read while it is that of all replicas.
            values = _nest.map_structure(_value, result(self))
        batch = global_batch()
        if batch is not None:
            batch.note_totals(_nest.flatten(values))
        return values

    run._of_all_replicas = True  # type: ignore[attr-defined]
    return run


def _value(leaf: Any) -> Any:
    return leaf.read_value() if isinstance(leaf, Variable) else leaf
