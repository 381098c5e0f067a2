"""Arguments of calls are looked through for symbolic tensors."""

import gc
import weakref

import mirrored as mr
from mirrored._symbolic import symbolic_in


def test_a_symbolic_tensor_in_nested_arguments() -> None:
    x = mr.keras.Input((2,))
    assert symbolic_in([1, "a", {"k": (mr.ones(2), [x])}]) is x
    assert symbolic_in([1, "a", {"k": (mr.ones(2), [object()])}]) is None


def test_types_of_a_program_are_not_kept() -> None:
    kind = type("Value", (), {})
    reference = weakref.ref(kind)
    assert symbolic_in([kind()]) is None
    del kind
    gc.collect()
    assert reference() is None
