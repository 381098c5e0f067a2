# Written by tests/support/stubs.py from the table in initializers.py; do not edit it.
from collections.abc import Callable, Mapping
from typing import Any
import numpy as np
from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explain_functions
from mirrored._late import LISTS
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import Shape
from mirrored.serialization.constructor_arguments import serialized
from mirrored.serialization.registry import Registry, spelt
Filling = Callable[..., Tensor]
def get(identifier: object) -> Filling | None:
    """Return the initializer that ``identifier`` stands for, None for None.

    Args:
        identifier: A name, such as ``"glorot_uniform"`` or ``"GlorotUniform"``, a class, a
            callable ``initializer(shape, dtype=None)``, the values themselves as a tensor or a
            NumPy array, or a name and arguments: ``{"class_name": ..., "config": ...}``.

    Raises:
        ValueError: There is no initializer of that name.
        TypeError: It does not take these arguments.

    Example:
        >>> type(get("he_normal")).__name__
        'HeNormal'
        >>> get({"class_name": "Constant", "config": {"value": 2.0}})((2,)).numpy().tolist()
        [2.0, 2.0]
    """
    if identifier is None:
        return None
    if is_tensor(identifier) or isinstance(identifier, np.ndarray | np.generic):
        return _values(identifier)
    if isinstance(identifier, str):
        initializer = _REGISTRY.deserialize({'class_name': identifier, 'config': {}})
        identifier = identifier if isinstance(initializer, str) else initializer
    return _REGISTRY.resolve(identifier)
def serialize(initializer: Any) -> Any:
    """Return the configuration of an initializer.

    Args:
        initializer: The initializer.

    Example:
        >>> from mirrored.layers.initializers import Constant
        >>> serialize(Constant(2.0))["config"]
        {'value': 2.0}
    """
    return serialized(initializer)
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None=None) -> Any:
    """Return the initializer that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> from mirrored.layers.initializers import Constant
        >>> deserialize(serialize(Constant(2.0)))((2,)).numpy().tolist()
        [2.0, 2.0]
    """
    return _REGISTRY.deserialize(config, custom_objects)
def _values(values: Any) -> Filling:
    """Return the initializer of a weight whose values are given."""

    def fill(shape: Shape, dtype: Any=None) -> Tensor:
        if tuple(shape) != tuple(values.shape):
            raise ValueError(f'Expected `shape` to be {tuple(values.shape)} for direct tensor as initializer. Received shape={shape}')
        return ops.cast(values, ops.floatx() if dtype is None else dtype)
    return fill
_REGISTRY: Registry[Filling] = Registry('initializer', __name__, spelt({**dict.fromkeys(LISTS[__name__], ()), 'Identity': ('IdentityInitializer',), 'Ones': ('one',), 'Orthogonal': ('OrthogonalInitializer',), 'RandomNormal': ('normal',), 'RandomUniform': ('uniform',), 'Zeros': ('zero',)}))
explain_functions(__name__, all_but='serialize')
from mirrored.layers.starting_values import Constant as Constant
from mirrored.layers.starting_values import GlorotNormal as GlorotNormal
from mirrored.layers.starting_values import GlorotUniform as GlorotUniform
from mirrored.layers.starting_values import HeNormal as HeNormal
from mirrored.layers.starting_values import HeUniform as HeUniform
from mirrored.layers.starting_values import Identity as Identity
from mirrored.layers.starting_values import Initializer as Initializer
from mirrored.layers.starting_values import LecunNormal as LecunNormal
from mirrored.layers.starting_values import LecunUniform as LecunUniform
from mirrored.layers.starting_values import Ones as Ones
from mirrored.layers.starting_values import Orthogonal as Orthogonal
from mirrored.layers.starting_values import RandomNormal as RandomNormal
from mirrored.layers.starting_values import RandomUniform as RandomUniform
from mirrored.layers.starting_values import TruncatedNormal as TruncatedNormal
from mirrored.layers.starting_values import VarianceScaling as VarianceScaling
from mirrored.layers.starting_values import Zeros as Zeros
