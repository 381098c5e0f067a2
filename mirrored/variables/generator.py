"""Random state in variables: TensorFlow's generators, Keras' seed generators, layers' streams.

Each draw moves the state on, in recorded functions too. All replicas of a step make the same draw,
of which they take the parts that belong to their examples.
"""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from mirrored import devices, ops
from mirrored._absent import refused_members
from mirrored._arguments import explained
from mirrored._naming import check_name, unique_name
from mirrored._numbers import as_integer
from mirrored._reprs import made_with
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.devices import hold_devices
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.creation import zeros_like
from mirrored.ops.hooks import active_recorder
from mirrored.ops.manipulation import stack
from mirrored.ops.op import OPS
from mirrored.ops.philox import SKIP
from mirrored.ops.rng_state import ShardPosition, current_position, new_seed
from mirrored.ops.shaping import CAST, concat, reshape
from mirrored.ops.spec import DType, as_dtype, float32, int64, uint64
from mirrored.ops.stateless_random import Draw, as_algorithm, vector_shape
from mirrored.ops.tensor import Tensor, new_id
from mirrored.ops.tensor_shape import TensorShape
from mirrored.variables.device_variable import DeviceVariable
from mirrored.variables.tracking import Seeds
from mirrored.variables.variable import (
    Prepared,
    Traits,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)

_SIZE, _WORD = 3, 1 << 64


def _as_words(value: Any) -> Tensor:
    """Return numbers as a tensor of int64; uint64 numbers keep their bits."""
    if is_tensor(value):
        return CAST(adopt(value, None), dtype=int64)
    array = np.array(value, object)
    if all(as_integer(number) is not None for number in array.flat):
        words = [int(number) % _WORD for number in array.flat]
        return adopt(np.array(words, np.uint64).view(np.int64).reshape(array.shape), None)
    return CAST(adopt(value, None), dtype=int64)


def _check_shape(words: Any, size: int | None) -> None:
    wanted = () if size is None else (size,)
    if tuple(words.shape) != wanted:
        raise ValueError(f"Shapes {tuple(words.shape)} and {wanted} are incompatible")


@explained
def create_rng_state(seed: TensorLike, alg: str | int) -> Tensor:
    """Return the state of a generator that starts from a seed.

    Args:
        seed: An integer of any size, or integers, of which three are used.
        alg: "philox" or "auto_select".

    Returns:
        The state: the low and the high 64 bits of the counter, and the key.

    Raises:
        ValueError: There is no such algorithm.

    Example:
        >>> import mirrored as mr
        >>> mr.random.create_rng_state(1234, "philox").numpy()
        array([1234,    0,    0])
    """
    as_algorithm(alg)
    number = None if is_tensor(seed) else as_integer(seed)
    if number is not None:
        return _as_words([number >> shift & _WORD - 1 for shift in (0, 64, 128)])
    words = reshape(_as_words(seed), [-1])[:_SIZE]
    missing = np.zeros(_SIZE - words.shape[0], np.int64)
    return concat([missing, words], axis=0) if missing.size else words


def _joined(key: Any, counter: Any) -> Tensor:
    """Return the state for a key and a counter."""
    word, words = _as_words(key), _as_words(counter)
    _check_shape(words, _SIZE - 1)
    _check_shape(word, None)
    return concat([words, reshape(word, [1])], axis=0)


@refused_members("tf.random.Generator", "binomial")
@explained
class Generator:
    """A stream of random numbers, whose state is a variable: TensorFlow's numbers for its seeds.

    Made in a strategy's scope it serves all replicas. They make the same draws: a shape whose first
    axis is as long as the replica's part of the batch has numbers of its own for each example of
    the global batch, and any other shape the same numbers on every replica. (In TensorFlow each
    replica draws other numbers.)

    Args:
        copy_from: A generator to take the state of.
        state: Three integers: the low and the high 64 bits of the counter, and the key; or a
            variable that holds them, and is used.
        alg: "philox" or "auto_select".

    Raises:
        ValueError: The state has another shape, or there is no such algorithm.

    Example:
        >>> import mirrored as mr
        >>> generator = mr.random.Generator.from_seed(1234)
        >>> generator.uniform([3]).numpy()
        array([0.3581475 , 0.11322761, 0.56670904], dtype=float32)
    """

    def __init__(
        self,
        copy_from: "Generator | None" = None,
        state: TensorLike | None = None,
        alg: str | int | None = None,
    ) -> None:
        needless = copy_from is not None
        if (state is None) != needless or (alg is None) != needless:
            raise AssertionError(
                "A generator needs either `copy_from`, or `state` and `alg`. Received: "
                f"copy_from={copy_from!r}, state={state!r:.80}, alg={alg!r}"
            )
        if copy_from is not None:
            state, alg = copy_from.state.read_value(), copy_from.algorithm
        self._algorithm = as_algorithm(alg)
        words = state if isinstance(state, Variable) else _as_words(state)
        _check_shape(words, _SIZE)
        self._state = words if isinstance(words, Variable) else state_variable(words, "StateVar")

    @classmethod
    def from_state(cls, state: TensorLike, alg: str | int) -> "Generator":
        """Return a generator that continues from a state; arguments as for the class."""
        return cls(alg=alg, state=state)

    @classmethod
    def from_seed(cls, seed: TensorLike, alg: str | int | None = None) -> "Generator":
        """Return a generator that starts from a seed; arguments as for `create_rng_state`."""
        chosen = as_algorithm("philox" if alg is None else alg)
        return cls(state=create_rng_state(seed, chosen), alg=chosen)

    @classmethod
    def from_non_deterministic_state(cls, alg: str | int | None = None) -> "Generator":
        """Return a generator seeded by the operating system."""
        chosen = as_algorithm("philox" if alg is None else alg)
        return cls(state=[secrets.randbits(64) for _ in range(_SIZE)], alg=chosen)

    @classmethod
    def from_key_counter(cls, key: TensorLike, counter: TensorLike, alg: str | int) -> "Generator":
        """Return a generator that starts from a key and a counter.

        Args:
            key: An integer.
            counter: Two integers, the low 64 bits first.
            alg: "philox" or "auto_select".

        Raises:
            ValueError: They have other shapes, or there is no such algorithm.
        """
        return cls(state=_joined(key, counter), alg=as_algorithm(alg))

    def reset(self, state: TensorLike) -> None:
        """Continue from a state; raises ValueError if it is not three integers."""
        words = _as_words(state)
        _check_shape(words, _SIZE)
        self._state.assign(words)

    def reset_from_seed(self, seed: TensorLike) -> None:
        """Start again from a seed, as `create_rng_state` takes it."""
        self._state.assign(create_rng_state(seed, self._algorithm))

    def reset_from_key_counter(self, key: TensorLike, counter: TensorLike) -> None:
        """Start again from a key and a counter, as `from_key_counter` takes them."""
        self._state.assign(_joined(key, counter))

    @property
    def state(self) -> Variable:
        """The variable that holds the state."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: 1, that of Philox, or 3."""
        return self._algorithm

    @property
    def key(self) -> Tensor:
        """The key, a scalar."""
        return self._state[-1]

    def skip(self, delta: TensorLike) -> Tensor:
        """Advance as if N numbers were drawn, and return the state before.

        Args:
            delta: The number of numbers, an integer.

        Raises:
            ValueError: Several replicas draw by a generator that was made outside their scope.
        """
        number = as_integer(delta)
        if number is None:
            raise TypeError(f"`delta` must be an integer. Received: {delta!r}")
        check_scope(self._state)
        before = self._state.read_value()
        self._state.assign(SKIP(before, delta=number))
        return before

    def _next(self, shape: Any) -> Draw:
        """Return the draw of numbers of a shape, and advance the state."""
        at: ShardPosition = current_position()
        return Draw(lambda: self.skip(math.prod(at.whole(vector_shape(shape)))), at)

    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Return normal numbers; arguments as for `random.normal`."""
        return self._next(shape).normal(shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Return normal numbers at most two standard deviations from the mean."""
        return self._next(shape).normal(shape, mean, stddev, dtype, truncated=True)

    def uniform(
        self,
        shape: ShapeLike,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        dtype: DTypeLike = float32,
        name: str | None = None,
    ) -> Tensor:
        """Return uniform numbers; arguments as for `random.stateless_uniform`."""
        wanted = as_dtype(dtype)
        if wanted.kind in "iu" and (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer dtype {wanted.name}, minval and maxval must be both `None` or both "
                f"non-`None`; got minval={minval} and maxval={maxval}"
            )
        if wanted.kind not in "iu" and maxval is None:
            maxval = 1
        return self._next(shape).uniform(shape, minval, maxval, wanted)

    def uniform_full_int(
        self, shape: ShapeLike, dtype: DTypeLike = uint64, name: str | None = None
    ) -> Tensor:
        """Return integers from the whole range of a dtype."""
        return self._next(shape).full_int(shape, as_dtype(dtype))

    def make_seeds(self, count: int = 1) -> Tensor:
        """Return seeds for `random.stateless_...`, shape (2, count), int64."""
        keys = self.uniform_full_int([count], int64)
        return stack([keys, zeros_like(keys)])

    def split(self, count: int = 1) -> "list[Generator]":
        """Return N new generators, whose keys this one draws."""
        keys: Sequence[int] = self.uniform_full_int([count], int64).numpy().tolist()
        return [Generator(state=[0, 0, key], alg=self._algorithm) for key in keys]


def check_scope(state: Variable) -> None:
    """Raise an error if several replicas draw from one state.

    Args:
        state: The variable of the state.

    Raises:
        ValueError: There are several replicas, and it has no copy on each of them.
    """
    if current_position().replicas > 1 and isinstance(state, DeviceVariable):
        raise ValueError(
            "Replicas need a generator with a state per replica. Received: a generator created "
            "outside the scope. Create it in `with strategy.scope():`."
        )


def state_variable(words: Any, name: str) -> Variable:
    """Return the variable of a state; every replica advances its own copy in the same way.

    Args:
        words: The state at first.
        name: The variable's name.
    """
    return Variable(
        words,
        trainable=False,
        name=name,
        aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
    )


class _Shared:
    """Keeps the global generator, until its device ends."""

    def __init__(self) -> None:
        self.generator: Generator | None = None
        hold_devices(self)

    def lose_devices(self) -> None:
        """Forget the generator: the device that holds its state is removed."""
        self.generator = None


_shared = _Shared()


def get_global_generator() -> Generator:
    """Return the global generator; the first call creates it.

    Example:
        >>> import mirrored as mr
        >>> mr.random.get_global_generator().uniform([2]).shape
        (2,)
    """
    if _shared.generator is None:
        _shared.generator = Generator.from_non_deterministic_state()
    return _shared.generator


def set_global_generator(generator: Generator) -> None:
    """Set the generator that `get_global_generator` returns.

    Args:
        generator: The generator.

    Example:
        >>> import mirrored as mr
        >>> mr.random.set_global_generator(mr.random.Generator.from_seed(1))
    """
    _shared.generator = generator


@explained
class SeedGenerator(Seeds):
    """A stream of seeds for `keras.random`; every seed is used once.

    Layers and models keep it in an attribute; a checkpoint has its state. Make it in the strategy's
    scope, where models are made.

    Args:
        seed: An integer; None takes one from the global stream.
        name: Its name; None makes one.

    Attributes:
        name: The name.
        state: The variable that holds the seed and how many were taken.

    Raises:
        ValueError: `seed` is no integer.

    Example:
        >>> import mirrored as mr
        >>> seeds = mr.keras.random.SeedGenerator(1337)
        >>> mr.keras.random.uniform((2,), seed=seeds).numpy()
        array([0.5598835 , 0.40457022], dtype=float32)
        >>> seeds.state.numpy()
        array([1337,    1])
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self._seed = seed
        self.name = unique_name("seed_generator") if name is None else check_name(name)
        number = 1 + new_seed() % 10**9 if seed is None else as_integer(seed)
        if number is None:
            raise ValueError(f"Argument `seed` must be an integer. Received: seed={seed!r}")
        self.state: Variable = state_variable(
            np.array([number, 0], np.int64), f"{self.name}/seed_generator_state"
        )

    def __repr__(self) -> str:
        return made_with(self)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments of an equal generator, which starts again."""
        return {"seed": self._seed, "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Create a generator from a configuration.

        Args:
            config: What `get_config` returned.
        """
        return cls(**config)

    def next(self, ordered: bool = True) -> Tensor:
        """Return the state, two integers of 64 bits, and advance it.

        Args:
            ordered: Whether the count goes up by one, and not to the next of numbers that mix.

        Raises:
            ValueError: Several replicas take seeds of a generator that was made outside their
                scope.
        """
        check_scope(self.state)
        before = self.state.read_value()
        if ordered:
            after: Any = before + np.array([0, 1], np.int64)
        else:
            after = OPS["FloorMod"]((before + 1) * 5387, 933199)
        self.state.assign(after)
        return before


class StreamVariable(Variable):
    """The seed of a stream and the number of its draws, on the host, for all replicas.

    Args:
        stream: The stream.
        name: The variable's name.
    """

    __slots__ = ("_id", "_stream")

    def __init__(self, stream: ops.SeedGenerator, name: str) -> None:
        self._stream, self._name, self._traits = stream, name, Traits()
        self._trainable, self._synchronization = False, VariableSynchronization.AUTO
        self._aggregation = VariableAggregation.ONLY_FIRST_REPLICA  # All replicas have it alike.
        self._id = new_id()

    @property
    def device(self) -> str:
        """The full name of the host."""
        return self.read_value().device

    @property
    def dtype(self) -> DType:
        """The dtype of both numbers."""
        return int64

    @property
    def shape(self) -> TensorShape:
        """The shape of two numbers."""
        return TensorShape((2,))

    def read_value(self) -> Tensor:
        """Return the state as it is now.

        Raises:
            RuntimeError: A function is being recorded.
        """
        self._check_context()
        words = np.array(self._stream.state, np.uint64).view(np.int64)
        with devices.device("CPU:0"):
            return ops.convert_to_tensor(words)

    def prepare(self, method: str, value: Any) -> "list[tuple[Variable, Prepared]]":
        """Return this variable with what the method would write into it."""
        self._check_context()
        old = self.read_value()
        if method == "change":
            new = value(old)
        else:
            new = ops.convert_to_tensor(value, int64)
            new = new if method == "assign" else old + (new if method == "assign_add" else -new)
        self._check_assigned(new.shape)
        return [(self, new)]

    def commit(self, value: Prepared, method: str = "assign") -> None:
        """Continue the stream from a state that `prepare` returned."""
        array = value if isinstance(value, np.ndarray) else value.numpy()
        self._stream.restore([int(number) % _WORD for number in array])

    def _check_context(self) -> None:
        if active_recorder() is not None:
            raise RuntimeError(
                f"The state {self.name!r} of a layer's random stream is kept by Python, which a "
                "recorded function does not run. Received: its use while a function was being "
                "recorded. Read and assign it outside mr.function and `fit`'s steps."
            )
