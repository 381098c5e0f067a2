"""Ops of one and of two tensors of any shape, and instructions, which random programs are made of.

Where an op does not take a shape it does something else, so that all of them can always be called.
"""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from mirrored import ops

Instruction = tuple[str, int, int, int]
_MOST = 260  # So many numbers there are for each choice.


def instructions(kinds: Sequence[str], longest: int) -> st.SearchStrategy[list[Instruction]]:
    """Return what draws three to so many instructions: a kind, and three numbers for its choices.

    Two numbers stand for these four, which take Hypothesis as long as all that is tested.
    """
    pairs = st.tuples(st.integers(0, len(kinds) * _MOST - 1), st.integers(0, _MOST * _MOST - 1))

    def instruction(numbers: tuple[int, int]) -> Instruction:
        kind, which = divmod(numbers[0], _MOST)
        return (kinds[kind], which, *divmod(numbers[1], _MOST))

    return st.lists(pairs, min_size=3, max_size=longest).map(
        lambda drawn: list(map(instruction, drawn))
    )


UNARY: list[Callable[[ops.Tensor], ops.Tensor]] = [
    ops.tanh,
    ops.relu,
    ops.sigmoid,
    ops.square,
    lambda x: -x,
    lambda x: ops.exp(-ops.square(x)),
    lambda x: ops.sqrt(abs(x)),
    lambda x: x * 0.5 + 1.0,
    lambda x: 1.0 / (1.0 + abs(x)),
    lambda x: ops.cast(ops.cast(x, "float64") * 0.1, "float32"),
    lambda x: ops.cast(x > 0.0, "float32"),
    lambda x: ops.reduce_sum(x) * 0.1,
    lambda x: ops.reduce_mean(x, axis=0) if x.ndim else x,
    lambda x: ops.reduce_max(x, axis=-1) if x.ndim else x,
    lambda x: ops.softmax(x) if x.ndim else x,
    lambda x: ops.transpose(x) if x.ndim == 2 else x,
    lambda x: ops.reshape(x, (x.size,)),
    lambda x: ops.reshape(x, (3, 2)) if x.size == 6 else x,
    lambda x: ops.reshape(x, (2, 3)) if x.size == 6 else x,
    lambda x: ops.reshape(x, (1, *x.shape)),
    lambda x: x[0] if x.ndim else x,
    lambda x: x[-1] if x.ndim else x,
    lambda x: x * x[-1] if x.ndim == 1 else x,
    lambda x: x[1:] if x.ndim else x,
    lambda x: x[::-1] if x.ndim else x,
    lambda x: x[..., :1] if x.ndim else x,
    lambda x: ops.identity(ops.stop_gradient(x)),
    ops.zeros_like,
]
BINARY: list[Callable[[ops.Tensor, ops.Tensor], ops.Tensor]] = [
    lambda x, y: x + y,
    lambda x, y: y - x,
    lambda x, y: x * y,
    ops.maximum,
    lambda x, y: x / (1.0 + y * y),
    lambda x, y: ops.add_n([x, y, x]),
    lambda x, y: ops.concat([x, y], axis=0) if x.ndim > 0 and x.size < 200 else x + y,
    lambda x, y: ops.concat([x, y, x], axis=-1) if x.ndim > 0 and x.size < 200 else x - y,
    lambda x, y: ops.OPS["Pack"](x, y) if x.size < 200 else x * y,
    lambda x, y: x @ ops.transpose(y) if x.ndim == 2 else x + y,
]
