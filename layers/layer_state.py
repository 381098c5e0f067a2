"""The facts that the library keeps of a layer, apart from the attributes of users' subclasses."""

import copy
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from mirrored import ops
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.construction import Arguments
from mirrored.layers.policy import DTypePolicy
from mirrored.layers.shapes import Shape, Shapes


class LayerState:
    """The facts about a layer, in one attribute: subclasses may use all other names.

    Args:
        arguments: What its constructor was called with.

    Attributes:
        arguments: The same; None where it was copied without.
        name: Its name, once `Layer.__init__` was called.
        path: The names of what it is in, and its own; None before it is built.
        trainable: Whether training changes its weights.
        policy: The policy of its dtypes.
        autocast: Whether floats that it is called on are cast.
        dtype: The dtype of its weights.
        compute_dtype: The dtype that it computes in.
        input_dtype: The dtype that inputs are cast to; None: floats keep theirs.
        autocast_dtype: The dtype that weights are cast to; None: they keep theirs.
        has_run: Whether it ran: then what it has not built it does not use.
        example_shape: The shape of an example that it was constructed with.
        input_shape: The shape of the first argument that it was built for.
        output_shape: The shape of its first output.
        output_dtype: The dtype of its first output.
        built_for: The arguments of `build`, by their names.
        takes_several: Whether its input is several tensors.
        casts_inside: Whether the layers inside it cast what a structure of inputs has.
        called_with: While it is built: the arguments of the call.
        keeps_inputs: Whether inputs keep the precision of weights, in narrow dtypes too.
        returns_values: Whether a variable that it returns is its value, as for models.
    """

    name: str
    trainable: bool
    policy: DTypePolicy
    dtype: np.dtype[Any]
    compute_dtype: np.dtype[Any]
    input_dtype: np.dtype[Any] | None
    autocast_dtype: np.dtype[Any] | None
    called_with: CallArguments | None = None
    keeps_inputs = returns_values = False

    def __init__(self, arguments: Arguments | None) -> None:
        self.arguments = arguments
        self.path: str | None = None
        self.autocast = True
        self.has_run = False
        self.example_shape: Shape | None = None
        self.input_shape: Shapes = None
        self.output_shape: Shapes = None
        self.output_dtype: Any = None
        self.built_for: dict[str, Shapes] | None = None
        self.takes_several = self.casts_inside = False

    def take_policy(self, policy: DTypePolicy) -> None:
        """Compute in the dtypes of a policy from now on.

        Args:
            policy: The policy.
        """
        self.policy = policy
        self.dtype = ops.as_dtype(policy.variable_dtype)
        self.compute_dtype = ops.as_dtype(policy.compute_dtype)
        self.input_dtype = self.compute_dtype if self.autocast else None
        if self.keeps_inputs:
            self.input_dtype = self.dtype
        mixed = self.autocast and self.compute_dtype != self.dtype
        self.autocast_dtype = self.compute_dtype if mixed else None

    def weights_scope(self) -> AbstractContextManager[Any]:
        """Return the context in which weights are made; models make theirs in their strategy's."""
        return nullcontext()

    def copied(self, **changes: Any) -> Self:
        """Return a copy.

        Args:
            **changes: The attributes that it has instead of its own.
        """
        other = copy.copy(self)
        vars(other).update(changes)
        return other
