"""The types of arguments, as they show at run time; tests/typing/ has what type checkers say."""

import inspect

import mirrored as mr


def test_signatures_show_the_types_by_their_names() -> None:
    shown = str(inspect.signature(mr.zeros))
    assert "shape: mirrored.types.ShapeLike" in shown
    assert "mirrored.types.DTypeLike" in shown
    assert (
        repr(mr.types.Nest[mr.types.TensorLike]) == "mirrored.types.Nest[mirrored.types.TensorLike]"
    )
