"""In which dtypes a layer keeps its weights and computes: one dtype, or two for mixed precision.

The names, and what they mean, are those of Keras.
"""

from typing import Any, Self

import numpy as np

from mirrored import ops
from mirrored._arguments import explained
from mirrored.serialization.constructor_arguments import Configured, deserialized

_MIXED = "mixed_bfloat16"
_VALID = f"Valid policies are 'float32', 'float64' and '{_MIXED}'."


class DTypePolicy(Configured):
    """The dtypes of a layer, by a name.

    Under "mixed_bfloat16" a layer keeps its weights in float32, computes in bfloat16 and gives
    bfloat16; losses, metrics and optimizers compute in float32. bfloat16 has the range of float32,
    so losses need not be scaled.

    Args:
        name: The name of a dtype, for weights and computation, or "mixed_bfloat16".

    Raises:
        TypeError: ``name`` is no string.
        ValueError: There is no such policy.
        ImportError: bfloat16 needs a package that is missing.

    Example:
        >>> policy = DTypePolicy("mixed_bfloat16")
        >>> policy.compute_dtype, policy.variable_dtype
        ('bfloat16', 'float32')
        >>> policy
        <DTypePolicy "mixed_bfloat16">
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(
                f"'name' must be a string, such as '{_MIXED}'. Received: name={name} (of type "
                f"{type(name)})"
            )
        self._name = name
        self._compute_dtype, self._variable_dtype = _dtypes_of(name)

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._name

    @property
    def compute_dtype(self) -> str:
        """The name of the dtype that layers compute in, and that their outputs have."""
        return str(self._compute_dtype.name)

    @property
    def variable_dtype(self) -> str:
        """The name of the dtype of their weights."""
        return str(self._variable_dtype.name)

    @classmethod
    def of_values(cls, dtype: Any) -> Self:
        """Return the policy of a layer without weights: of any dtype that tensors have.

        Args:
            dtype: The dtype, or its name.
        """
        policy = cls.__new__(cls)
        policy._compute_dtype = policy._variable_dtype = ops.as_dtype(dtype)
        policy._name = policy._compute_dtype.name
        return policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self._name}">'


def _dtypes_of(name: str) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtypes of computation and of weights."""
    if name == _MIXED:
        return ops.bfloat16(), ops.float32
    if name in ("mixed_float16", "float16"):
        raise ValueError(
            "Layers do not compute in float16: its range is so small that steps whose gradients "
            "overflow have to be skipped, and which ones do depends on the number of replicas. "
            f"{_VALID} Received: name={name!r}. Use '{_MIXED}', which has the range of float32."
        )
    if name == "bfloat16":
        raise ValueError(
            f"Updates are too small for weights of 8 bits' precision. {_VALID} Received: "
            f"name={name!r}. Use '{_MIXED}', which computes in bfloat16 and keeps float32 weights."
        )
    try:
        dtype = ops.as_dtype(name)
    except TypeError:
        raise ValueError(
            f"Cannot convert '{name}' to a mixed precision DTypePolicy. {_VALID} Received: "
            f"name={name!r}"
        ) from None
    return dtype, dtype


_global: list[DTypePolicy] = []


def dtype_policy() -> DTypePolicy:
    """Return the policy of layers that are made without a ``dtype``: by default that of floatx.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.mixed_precision.global_policy()
        <DTypePolicy "float32">
    """
    return _global[0] if _global else DTypePolicy(ops.floatx())


@explained
def set_dtype_policy(policy: str | DTypePolicy) -> None:
    """Set the policy of layers that are made from now on without a ``dtype``.

    Args:
        policy: A policy, or the name of one.

    Raises:
        ValueError: It is neither.
        ImportError: bfloat16 needs a package that is missing.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.mixed_precision.set_global_policy("mixed_bfloat16")
        >>> layer = mr.layers.Dense(2)
        >>> layer([[1.0, 2.0]]).dtype.name, layer.kernel.dtype.name
        ('bfloat16', 'float32')
        >>> mr.keras.mixed_precision.set_global_policy("float32")
    """
    if not isinstance(policy, str | DTypePolicy):
        raise ValueError(
            "Invalid `policy` argument. Expected the string name of a policy (such as "
            f"'{_MIXED}') or a `DTypePolicy` instance. Received: policy={policy} (of type "
            f"{type(policy)})"
        )
    chosen = policy if isinstance(policy, DTypePolicy) else DTypePolicy(policy)
    # What floatx means anyway goes on following it.
    _global[:] = [] if chosen.name == ops.floatx() else [chosen]


def as_policy(dtype: Any) -> DTypePolicy:
    """Return the policy that a layer's ``dtype`` argument means.

    Args:
        dtype: A policy, its name or configuration, a dtype that tensors have, or None for the
            global policy.

    Raises:
        TypeError: It is none of these.
        ValueError: It is a policy or a dtype that layers cannot have.

    Example:
        >>> as_policy("float64")
        <DTypePolicy "float64">
    """
    if dtype is None:
        return dtype_policy()
    if isinstance(dtype, dict):
        dtype = _of_configuration(dtype)
    if isinstance(dtype, DTypePolicy):
        return dtype
    if isinstance(dtype, str) and dtype.startswith("mixed_"):
        return DTypePolicy(dtype)
    return DTypePolicy(ops.as_dtype(dtype).name)


def _of_configuration(config: dict[str, Any]) -> Any:
    policy = deserialized(config, {"DTypePolicy": DTypePolicy})
    if not isinstance(policy, DTypePolicy):
        raise ValueError(
            "Cannot interpret `dtype` argument. Expected a string or an instance of DTypePolicy. "
            f"Received: dtype={config!r:.200}"
        )
    return policy
