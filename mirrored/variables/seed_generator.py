"""Keras' generator of seeds: a variable of a seed and a count, which each draw moves on.

What is drawn by such seeds are Keras' numbers. All replicas of a step take the same seed.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from mirrored._arguments import explained
from mirrored._naming import check_name, unique_name
from mirrored._numbers import as_integer
from mirrored._reprs import made_with
from mirrored.ops.op import OPS
from mirrored.ops.rng_state import new_seed
from mirrored.ops.tensor import Tensor
from mirrored.variables.generator import check_scope, state_variable
from mirrored.variables.tracking import Seeds
from mirrored.variables.variable import Variable


@explained
class SeedGenerator(Seeds):
    """A stream of seeds for `keras.random`, each of which is taken once.

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
        """Return the arguments that make one like it, which begins anew."""
        return {"seed": self._seed, "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return one that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
        """
        return cls(**config)

    def next(self, ordered: bool = True) -> Tensor:
        """Return the state, two integers of 64 bits, and move it on.

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
