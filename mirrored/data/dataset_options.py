"""Options of whole pipelines, with TensorFlow's names and types.

None of them changes an element here. Elements are created one after another, always in the same
order, and one process creates them for all replicas.
"""

import enum
from collections.abc import Callable
from typing import Any, Self

from mirrored._arguments import explained
from mirrored.data.arrays import Rows
from mirrored.data.elements import Elements
from mirrored.data.rng import Iteration
from mirrored.data.transform import Derived, Slices, Transform


class AutoShardPolicy(enum.IntEnum):
    """How the workers of `MultiWorkerMirroredStrategy` share a dataset.

    AUTO and DATA: each takes its replicas' rows of every batch. OFF: each goes over the whole
    dataset by itself. FILE and HINT are refused. For one process all policies are alike.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> policy = mr.data.experimental.AutoShardPolicy.DATA
        >>> options.experimental_distribute.auto_shard_policy = policy
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class AutotuneAlgorithm(enum.Enum):
    """How TensorFlow tunes a pipeline; here nothing is tuned.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> algorithm = mr.data.experimental.AutotuneAlgorithm.HILL_CLIMB
        >>> options.autotune.autotune_algorithm = algorithm
    """

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class ExternalStatePolicy(enum.Enum):
    """Treatment of state outside of a pipeline; here iterators with such state are not saved.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> policy = mr.data.experimental.ExternalStatePolicy.WARN
        >>> options.experimental_external_state_policy = policy
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2


class _Option:
    """An attribute that holds values of one type.

    Args:
        kind: The type.
        default: Makes the value that it has before one is set.
    """

    name = ""

    def __init__(self, kind: type, default: Callable[[], Any] = lambda: None) -> None:
        self._kind, self._default = kind, default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name  # Older names of it are set after it.

    def __get__(self, options: "OptionsBase | None", owner: type) -> Any:
        if options is None:
            return self
        values = vars(options)["_values"]
        if self.name not in values:
            values[self.name] = self._default()
        return values[self.name]

    def __set__(self, options: "OptionsBase", value: Any) -> None:
        if not isinstance(value, self._kind):
            raise TypeError(
                f'Property "{self.name}" must be of type {self._kind}, got: {value!r:.200} '
                f"(type: {type(value)})"
            )
        vars(options)["_values"][self.name] = value


class OptionsBase:
    """Base of groups of options: typed attributes; to set any other attribute is an error."""

    def __init__(self) -> None:
        vars(self).update(_values={}, _is_frozen=False)

    @classmethod
    def _names(cls) -> list[str]:
        options = vars(cls).items()
        return [name for name, it in options if isinstance(it, _Option) and it.name == name]

    def __setattr__(self, name: str, value: Any) -> None:
        if vars(self)["_is_frozen"]:
            raise ValueError(
                "Mutating `mr.data.Options()` returned by `mr.data.Dataset.options()` has no "
                "effect. Use `mr.data.Dataset.with_options(options)` to set or update dataset "
                "options."
            )
        if not isinstance(getattr(type(self), name, None), _Option):
            known = ", ".join(self._names())
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}. It has: {known}."
            )
        super().__setattr__(name, value)

    def _changed(self) -> dict[str, Any]:
        """Return the values that are not the default ones, by name."""
        default = type(self)()
        values = {name: getattr(self, name) for name in self._names()}
        return {name: it for name, it in values.items() if it != getattr(default, name)}

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._changed() == other._changed()

    __hash__ = None  # type: ignore[assignment]  # They change.

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={it!r}" for name, it in self._changed().items())
        return f"{type(self).__name__}({changed})"

    def _merged(self, other: Self) -> Self:
        """Return these options and others, whose values count where both have some."""
        merged = type(self)()
        for options in (self, other):
            for name, value in options._changed().items():
                is_group = isinstance(value, OptionsBase)
                setattr(merged, name, getattr(merged, name)._merged(value) if is_group else value)
        return merged

    def _freeze(self) -> None:
        for name in self._names():
            value = getattr(self, name)
            if isinstance(value, OptionsBase):
                value._freeze()
        vars(self)["_is_frozen"] = True


class AutotuneOptions(OptionsBase):
    """TensorFlow's settings of automatic tuning: accepted, and without effect.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> options.autotune.enabled = True
    """

    enabled = _Option(bool)
    cpu_budget = _Option(int)
    ram_budget = _Option(int)
    autotune_algorithm = _Option(AutotuneAlgorithm)
    initial_parallelism = _Option(int)
    min_parallelism = _Option(int)


class DistributeOptions(OptionsBase):
    """How workers share a dataset; without effect where there is one.

    Replicas of one process share each batch, whatever the policy.

    Example:
        >>> import mirrored as mr
        >>> mr.data.experimental.DistributeOptions().auto_shard_policy.name
        'AUTO'
    """

    auto_shard_policy = _Option(AutoShardPolicy, lambda: AutoShardPolicy.AUTO)
    num_devices = _Option(int)


class OptimizationOptions(OptionsBase):
    """Which transformations TensorFlow replaces by faster ones: accepted, and without effect.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> options.experimental_optimization.map_fusion = True
    """

    apply_default_optimizations = _Option(bool)
    filter_fusion = _Option(bool)
    filter_parallelization = _Option(bool)
    inject_prefetch = _Option(bool)
    map_and_batch_fusion = _Option(bool)
    map_and_filter_fusion = _Option(bool)
    map_fusion = _Option(bool)
    map_parallelization = _Option(bool)
    noop_elimination = _Option(bool)
    parallel_batch = _Option(bool)
    seq_interleave_prefetch = _Option(bool)
    shuffle_and_repeat_fusion = _Option(bool)


class ThreadingOptions(OptionsBase):
    """How many threads a pipeline has in TensorFlow: accepted, and without effect.

    Here `prefetch` has one, and elements are made by whoever takes them where there is none.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> options.threading.private_threadpool_size = 4
    """

    max_intra_op_parallelism = _Option(int)
    private_threadpool_size = _Option(int)


@explained
class Options(OptionsBase):
    """Options of a dataset, for `Dataset.with_options`.

    Those that TensorFlow has are accepted, with its types, and others refused. None changes an
    element: the order is always deterministic, and batches are shared among replicas in one way.

    Attributes:
        autotune: `AutotuneOptions`.
        deterministic: A bool: whether the order of elements is to be always the same, as it is.
        experimental_distribute: `DistributeOptions`.
        experimental_external_state_policy: An `ExternalStatePolicy`.
        experimental_optimization: `OptimizationOptions`.
        experimental_slack: A bool.
        experimental_symbolic_checkpoint: A bool.
        experimental_warm_start: A bool.
        dataset_name: A string.
        framework_type: A list.
        threading: `ThreadingOptions`.
        experimental_deterministic: An older name of `deterministic`.
        experimental_threading: An older name of `threading`.

    Raises:
        AttributeError: An attribute is set that there is not.
        TypeError: It is set to a value of another type.

    Example:
        >>> import mirrored as mr
        >>> options = mr.data.Options()
        >>> options.deterministic = False
        >>> mr.data.Dataset.range(3).with_options(options).options().deterministic
        False
    """

    autotune = _Option(AutotuneOptions, AutotuneOptions)
    deterministic = _Option(bool)
    experimental_distribute = _Option(DistributeOptions, DistributeOptions)
    experimental_external_state_policy = _Option(ExternalStatePolicy)
    experimental_optimization = _Option(OptimizationOptions, OptimizationOptions)
    experimental_slack = _Option(bool)
    experimental_symbolic_checkpoint = _Option(bool)
    experimental_warm_start = _Option(bool)
    dataset_name = _Option(str)
    framework_type = _Option(list)
    threading = _Option(ThreadingOptions, ThreadingOptions)
    experimental_deterministic = deterministic
    experimental_threading = threading

    def merge(self, options: "Options") -> "Options":
        """Return these options and others, whose values count where both have some.

        Args:
            options: The others.

        Raises:
            TypeError: They are none.

        Example:
            >>> import mirrored as mr
            >>> options = mr.data.Options()
            >>> options.deterministic = True
            >>> mr.data.Options().merge(options).deterministic
            True
        """
        if not isinstance(options, Options):
            raise TypeError(
                f"Could not merge incompatible options of type {type(options)} and {Options}. Pass "
                "mr.data.Options()."
            )
        return self._merged(options)


class Optioned(Derived):
    """The elements of another transform, with options."""

    def __init__(self, source: Transform, options: Options) -> None:
        super().__init__(source)
        self.options = options
        self.batch_size = source.batch_size

    @property
    def slices(self) -> Slices | None:
        """The slices of the other transform."""
        return self._source.slices

    def open(self, iteration: Iteration) -> Elements:
        """Return the other transform's iterator."""
        return self._source.open(iteration.source())

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return the reader of the other transform's rows."""
        return self._source.open_rows(iteration.source())


def merged_options(transform: Transform) -> Options:
    """Return the options of a transform and of all that it takes elements from."""
    options = Options()
    for source in transform.sources:
        options = options.merge(merged_options(source))
    return options.merge(transform.options) if isinstance(transform, Optioned) else options
