"""Ops, operators and slices of placeholders: nodes whose runs give what the calls give."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.graph import Part, SymbolicTensor
from mirrored.layers import Dense, Input

RNG = np.random.default_rng(0)
A, B = (RNG.uniform(0.5, 2.0, size=(3, 4)).astype(np.float32) for _ in range(2))
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, y: (x + y) * 2 - y / 3,
    "from the left": lambda x, y: 2 - (1 + x) * (3.0 / y),
    "one operand": lambda x, y: abs(-x),
    "powers": lambda x, y: (x**2) ** y % 2 + x // 2,
    "comparisons": lambda x, y: (x < 1) & ~(x >= y) | (x != 2) ^ (y <= 1),
    "products": lambda x, y: x @ mr.transpose(y),
    "slices": lambda x, y: x[:, 1:] + y[:, None, 2] * x[..., ::-2][:, 1:],
    "a tensor on the left": lambda x, y: mr.constant(B[:1]) * x + mr.ones((4,)) / y,
    "an array on the left": lambda x, y: B[:1] - x,
    "a mask": lambda x, y: mr.where(x > y, x, 0.0),
    "a list of them": lambda x, y: mr.concat([x, [[1.0] * 4], y], axis=0),
    "arguments by name": lambda x, y: mr.reduce_sum(input_tensor=x, axis=1, keepdims=True),
    "several results": lambda x, y: (
        mr.split(x, [1, 3], axis=1)[1] + mr.unstack(y, axis=1)[2][:, None]
    ),
    "sizes": lambda x, y: (
        mr.reshape(x, (mr.shape(x)[0], 2, -1)) + mr.cast(mr.shape(y)[1], "float32")
    ),
    "a shape of sizes": lambda x, y: mr.zeros(mr.shape(x)) + mr.fill((mr.shape(y)[0], 1), 2.0),
    "a part up to a size": lambda x, y: x[: mr.shape(y)[0] - 1, mr.shape(x)[1] // 2 :],
    "Keras' functions": lambda x, y: mr.keras.ops.add(mr.keras.ops.relu(x - 1), 2),
    "an activation": lambda x, y: mr.keras.activations.softmax(mr.nn.sigmoid(x) + mr.tanh(y)),
    "a loss": lambda x, y: mr.keras.losses.mean_squared_error(x, y),
    "a structure": lambda x, y: mr.nest.map_structure(mr.square, {"a": [x], "b": y}),
}


@cases("call", CALLS.values(), ids=CALLS)
def test_a_run_gives_what_the_call_gives(call: Callable[[Any, Any], Any]) -> None:
    x, y = Input((4,)), Input((4,))
    drawn = call(x, y)
    part = Part([x, y], drawn)
    for rows in (3, 2):
        expected = mr.nest.flatten(call(mr.constant(A[:rows]), mr.constant(B[-rows:])))
        results = part.run([mr.constant(A[:rows]), mr.constant(B[-rows:])])
        for tensor, result, wanted in zip(mr.nest.flatten(drawn), results, expected, strict=True):
            np.testing.assert_array_equal(result.numpy(), wanted.numpy(), strict=True)
            assert tensor.dtype == wanted.dtype
            assert tensor.shape.is_compatible_with(wanted.shape)
            assert tensor.shape.as_list().count(None) <= 2


@pytest.mark.behaviour("graph-names")
def test_names_are_those_of_keras() -> None:
    mr.layers.reset_names()
    x, y = Input((4,)), Input((4,), name="b")
    drawn = [
        (x + y) * 2 - y / 3,
        *(abs(-x), x[:, 1:], x @ mr.transpose(y), x**2, 2 - x, x // 2, x % 2, x < 1, x != 2),
    ]
    # What Keras 3.15's `model.operations` are for the same, in this order.
    names = """
        input_layer b add multiply true_divide negative transpose subtract absolute get_item matmul
        power subtract_1 floor_divide mod less not_equal
    """
    model = mr.Model([x, y], drawn)
    assert [each.name for each in model.operations] == names.split()
    assert [each.name for each in model.layers] == ["input_layer", "b"]
    assert mr.Model(x, mr.reduce_sum(x, name="total")).output_names == ["total"]


NO_VALUES: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    # The classes of Keras' errors.
    "bool": (bool, TypeError),
    "np.asarray": (np.asarray, ValueError),
    "iter": (list, NotImplementedError),
    "len": (len, TypeError),
    "numpy": (lambda x: x.numpy(), AttributeError),
    "float": (float, ValueError),
    "a loop": (lambda x: [1 for _ in x], NotImplementedError),
    "a branch": (lambda x: 1 if x > 0 else 2, TypeError),
}


@pytest.mark.behaviour("placeholders")
@cases(("use", "kind"), NO_VALUES.values(), ids=NO_VALUES)
def test_there_are_no_values(use: Callable[[Any], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"placeholder for a shape and a dtype, without values.*`call`"):
        use(Input((4,)))


def test_code_that_has_no_module() -> None:
    found = {"mr": mr}
    exec("shape = mr.keras.Input((3,)).shape", found)  # Whose frame has no `__name__`.
    assert found["shape"] == (None, 3)


def test_placeholders_hash_and_compare_by_identity() -> None:
    x, y = Input((4,)), Input((4,))
    assert len({x, y}) == 2
    assert x in [y, x]
    assert (x == y) is False
    assert [mr.is_tensor(x), mr.keras.ops.is_tensor(x)] == [False, False]  # As in TensorFlow.
    assert f"{x}" == repr(x) == f"<SymbolicTensor shape=(None, 4), dtype=float32, name={x.name}>"


def test_errors_are_those_of_the_call() -> None:
    x = Input((4,))
    assert issubclass(mr.errors.InvalidArgumentError, ValueError)  # As Keras' error is.
    with pytest.raises(mr.errors.InvalidArgumentError) as raised:
        x + mr.ones((3,))
    assert "instead of unknown sizes" in raised.value.__notes__[0]
    with pytest.raises(TypeError, match=r"keep_dims'\. Did you mean 'keepdims'"):
        mr.reduce_sum(x, keep_dims=True)
    with pytest.raises(TypeError, match=r"^reshape\(\) missing 1 required") as unfit:
        mr.reshape(x)
    assert not hasattr(unfit.value, "__notes__")  # No shape was looked for.
    with pytest.raises(ValueError, match="uses a placeholder that is not one of its arguments"):
        mr.cond(x[0, 0] > 0, lambda: x, lambda: -x)
    with pytest.raises(AttributeError, match=r"It has no `size`: use `mr\.size\(x\)`"):
        x.size  # noqa: B018
    assert mr.size(x).shape == ()
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match="depends on values"):
        mr.boolean_mask(x, x > 0)


SHAPES: dict[str, tuple[Callable[[Any], Any], list[int | None]]] = {
    "kept": (lambda x: x * 2, [None, None, 6]),
    "known by a slice": (lambda x: x[:, :, 2:], [None, None, 4]),
    "joined": (lambda x: mr.reshape(x, (-1, 6)), [None, 6]),
    "halves": (lambda x: mr.split(x, 2, axis=1)[0], [None, None, 6]),
    "an element far behind": (lambda x: x[:, 30], [None, 6]),
    "at most so many": (lambda x: x[:, :5], [None, None, 6]),
    "thirds of all": (lambda x: mr.reshape(x, (-1, 9)), [None, 9]),
    "reduced": (lambda x: mr.reduce_max(x, axis=[0, 2]), [None]),
    "that of what it is added to": (lambda x: x[:, :, 0] + mr.ones((5, 1)), [5, None]),
    "by broadcasting": (lambda x: x + mr.ones((6,)), [None, None, 6]),
}


@cases(("call", "shape"), SHAPES.values(), ids=SHAPES)
def test_sizes_that_are_not_known(call: Callable[[Any], Any], shape: list[int | None]) -> None:
    assert call(Input((None, 6))).shape.as_list() == shape


def test_structures_of_placeholders_are_no_nodes() -> None:
    x, y = Input((4,)), Input((4,))
    assert mr.nest.flatten({"b": [x], "a": y}) == [y, x]
    assert mr.keras.utils.pack_x_y_sample_weight(x, y) == (x, y)
    assert mr.get_static_value(x) is None
    assert mr.ensure_shape([1.0], mr.TensorShape(None)).shape == (1,)  # Looked through, and none.


def test_variables_and_scopes(strategy: mr.MirroredStrategy) -> None:
    with strategy.scope():
        x = Input((4,))
        offset = mr.Variable([1.0, 2.0, 3.0, 4.0])
        model = mr.Model(x, Dense(2)(offset * x + x / offset))
    (kernel, bias), values = model.get_weights(), offset.numpy()
    expected = (A * values + A / values) @ kernel + bias
    np.testing.assert_allclose(model(A).numpy(), expected, rtol=1e-5)
    offset.assign_add([1.0] * 4)
    values = offset.numpy()
    expected = (A * values + A / values) @ kernel + bias
    np.testing.assert_allclose(model.predict(A, verbose=0), expected, rtol=1e-5)


def test_shapes_draw_no_random_numbers() -> None:
    def draws(drawing: bool) -> list[Any]:
        mr.random.set_seed(3)
        if drawing:
            x = Input((4,))
            drawn = x + mr.random.normal(mr.shape(x)) + mr.random.uniform((4,), seed=2)
            assert drawn.shape == (None, 4)
        return [mr.random.normal((2,)).numpy().tolist() for _ in range(2)]

    assert draws(True) == draws(False)


# ------------------------------------------------------------------------------ every function

HOMES = (mr, mr.math, mr.nn, mr.linalg, mr.keras.ops, mr.keras.activations, mr.keras.backend)
ARGUMENTS: list[tuple[Any, ...]] = [
    *[(name,) for name in ["x", "p", "i", "b", "j", "v"]],
    *[(name, name) for name in ["x", "p", "b", "j", "v"]],
    *[("x", each) for each in (0, 1, 2, (1, 0), (-1, 3), "i", "j", "float64", [1])],
    *[(("x", "x"),), (("x", "x"), 1), ("i", "x"), ("x", 0.2, 0.5), ("x", "x", "x")],
    *[("b", "x", "x"), ("j", 3), ("i", 3), ("x", "i", 3), ("x", (2, 1)), ("x", 0, 1), ("p", "x")],
]
# What depends on values, on the number of rows as a number of tensors, or on axes alone.
NOT_DRAWN = """
    add_n bincount boolean_mask clip_by_global_norm confusion_matrix constant dynamic_partition fill
    full identity_n ones rank sequence_mask unique unique_with_counts unstack where zeros
    keras.ops.empty keras.ops.get_item keras.ops.hsplit keras.ops.nonzero keras.ops.segment_max
    keras.ops.segment_min keras.ops.segment_prod keras.ops.segment_sum keras.ops.split
    keras.ops.tile keras.ops.vsplit
"""


@functools.cache
def values(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    square = rng.normal(size=(rows, 3, 3)).astype(np.float32)
    return {
        "x": rng.uniform(0.1, 0.9, size=(rows, 3)).astype(np.float32),
        "p": square @ square.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32),
        "i": rng.integers(0, 3, size=rows).astype(np.int32),
        "b": rng.random((rows, 3)) > 0.5,
        "j": rng.integers(0, 3, size=(rows, 3)).astype(np.int32),
        "v": rng.uniform(0.1, 0.9, size=rows).astype(np.float32),
    }


def given(arguments: tuple[Any, ...], by_name: dict[str, Any]) -> list[Any]:
    def found(each: Any) -> Any:
        if isinstance(each, tuple) and "x" in each:
            return [found(item) for item in each]
        return by_name[each] if isinstance(each, str) and each in by_name else each

    return [found(each) for each in arguments]


def functions() -> Iterator[tuple[str, Any]]:
    seen = set()
    for home in HOMES:
        for name in dir(home):
            each = getattr(home, name, None)
            ours = inspect.isfunction(each) and each.__module__.startswith("mirrored")
            inside = home.__name__.partition(".")[2]
            if ours and {name, f"{inside}.{name}"}.isdisjoint(NOT_DRAWN.split()) and name[0] != "_":
                if each not in seen and not name.startswith("set_"):
                    yield f"{home.__name__}.{name}", each
                seen.add(each)


def tensors(result: Any) -> list[Any]:
    found = mr.nest.flatten(result)
    return found if all(isinstance(each, mr.Tensor) for each in found) else []


@pytest.mark.slow
def test_every_function_draws_what_it_computes() -> None:
    for name, function in functions():
        try:
            check_function(function)
        except Exception as error:
            error.add_note(f"The function is {name}.")
            raise


def check_function(function: Any) -> None:
    one, other = ({name: mr.constant(v) for name, v in values(n).items()} for n in (4, 7))
    tried = 0
    for arguments in ARGUMENTS:
        if tried == 3:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                first = tensors(function(*given(arguments, one)))
                if not first:
                    continue
                wanted = [first, tensors(function(*given(arguments, other)))]
                again = tensors(function(*given(arguments, one)))
        except Exception:  # These are no arguments of it.
            continue
        alike = [np.array_equal(a, b, equal_nan=True) for a, b in zip(first, again, strict=True)]
        if not all(alike):
            continue
        tried += 1
        inputs = {k: Input(batch_shape=(None, *v.shape[1:]), dtype=v.dtype) for k, v in one.items()}
        drawn = mr.nest.flatten(function(*given(arguments, inputs)))
        assert all(isinstance(each, SymbolicTensor) for each in drawn)
        part = Part(list(inputs.values()), drawn)
        for held, expected in zip((one, other), wanted, strict=True):
            for tensor, result, each in zip(
                drawn, part.run(list(held.values())), expected, strict=True
            ):
                np.testing.assert_array_equal(result.numpy(), each.numpy(), strict=True)
                assert tensor.dtype == each.dtype
                assert tensor.shape.is_compatible_with(each.shape)
