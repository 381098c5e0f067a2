"""Python's functions are called in each run of a recorded one, with the shapes that were said."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

OneOfBoth = Callable[..., Any]
BOTH = [mr.numpy_function, mr.py_function]
both = pytest.mark.parametrize("call", BOTH, ids=["numpy_function", "py_function"])
X = np.array([1.0, 2.0], np.float32)


def twice(x: Any) -> Any:
    return np.asarray(x) * 2


def by_set_shape(y: Any, shape: Any) -> Any:
    y.set_shape([None for _ in shape])  # Which says nothing that is of use.
    y.set_shape(shape)
    return y


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "ensure_shape": mr.ensure_shape,
    "set_shape": by_set_shape,
    "reshape": mr.reshape,
}


@both
@pytest.mark.parametrize("say", WAYS.values(), ids=WAYS)
def test_a_shape_that_is_said(say: Callable[[Any, Any], Any], call: OneOfBoth) -> None:
    given: list[Any] = []

    def kept(x: Any) -> Any:
        given.append(np.asarray(x))
        return np.asarray(x) * 2

    @mr.function
    def step(x: Any) -> Any:
        y = say(call(kept, [x + 1.0], mr.float32), [2])
        return y * y + y[0]

    for i in range(3):
        np.testing.assert_array_equal(step(mr.constant(X + i)), (z := (X + i + 1) * 2) * z + z[0])
    # What it is given is its own: the next run does not change it.
    np.testing.assert_array_equal(given, [X + 1, X + 2, X + 3])
    assert step.experimental_get_tracing_count() == 1


@both
def test_what_is_returned_needs_no_shape(call: OneOfBoth) -> None:
    @mr.function
    def step(n: Any) -> Any:
        ones = call(lambda n: np.ones(int(n), np.float32), [n], mr.float32)
        several = call(lambda n: [n, n * 0.5], [mr.cast(n, "float64")], [mr.float64, mr.float64])
        return {"ones": ones, "n": n + 1, "several": several}

    for n in (3, 1, 4):
        result = step(mr.constant(n))
        assert result["ones"].shape == (n,)
        assert [float(each) for each in result["several"]] == [n, n / 2]
        assert int(result["n"]) == n + 1
    spec = step.get_concrete_function(mr.constant(1)).structured_outputs["ones"]
    assert (spec.shape, spec.dtype) == (None, mr.float32)


@both
def test_what_nobody_reads_is_called_in_order(call: OneOfBoth) -> None:
    told: list[Any] = []

    @mr.function
    def step(x: Any) -> Any:
        call(lambda x: told.append(("first", float(x))), [x], [])
        call(lambda: told.append("none"), [], [])
        call(lambda x: told.append(("last", float(x))), [x * 2.0], [])
        return x

    for value in (1.0, 2.0):
        step(mr.constant(value))
    assert told == [("first", 1), "none", ("last", 2), ("first", 2), "none", ("last", 4)]


@both
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64", "bool"])
def test_dtypes_come_as_they_are(dtype: str, call: OneOfBoth) -> None:
    seen: list[Any] = []

    def same(x: Any) -> Any:
        seen.append(np.asarray(x).dtype.name)
        return x

    result = mr.function(lambda x: mr.ensure_shape(call(same, [x], dtype), (2,)))(
        mr.constant(np.array([1, 0], dtype))
    )
    assert ([result.dtype, *seen], result.numpy().tolist()) == ([dtype, dtype], [1, 0])


@both
def test_another_shape_in_a_later_run_stops_it_before_anything_is_written(call: OneOfBoth) -> None:
    v, w = mr.Variable(X), mr.Variable(X)

    @mr.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        y = mr.ensure_shape(call(lambda x: np.asarray(x)[: int(x[0])], [x], mr.float32), (2,))
        w.assign_add(y)
        return y

    step(mr.constant([2.0, 5.0]))
    for _ in range(2):
        with pytest.raises(mr.errors.InvalidArgumentError, match=r"shape \[1\] where.* be \[2\]"):
            step(mr.constant([1.0, 5.0]))
    with pytest.raises(IndexError):
        mr.function(lambda x: (v.assign(x), call(lambda x: [][0], [x], mr.float32))[1])(X)
    for each in (v, w):
        np.testing.assert_array_equal(each.numpy(), [3, 7])


REFUSED: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda y: y * 2.0,
    "a function": mr.reduce_sum,
    "an element": lambda y: y[0],
    "its shape": lambda y: y.shape,
    "its values": lambda y: y.numpy(),
    "its truth": lambda y: 1 if y else 2,
    "a number": float,
    "an array": np.asarray,
    "a size that follows": lambda y: mr.reshape(y, (2, -1)),
    "no shape": lambda y: mr.ensure_shape(y, None),
    "a part of one": lambda y: mr.ensure_shape(y, (None,)),
    "a variable": lambda y: mr.Variable(X).assign(y),
}


@both
@pytest.mark.parametrize("use", REFUSED.values(), ids=REFUSED)
def test_what_needs_its_shape(use: Callable[[Any], Any], call: OneOfBoth) -> None:
    ran: list[int] = []
    function = mr.function(lambda x: use(call(lambda x: ran.append(1), [x], mr.float32)))
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match=r"mr\.ensure_shape"):
        function(mr.constant(X))
    assert not ran


def test_gradients() -> None:
    """NumPy's have none, as in TensorFlow; of what computes with tensors it is refused."""

    def gradient(call: OneOfBoth) -> Any:
        @mr.function
        def step(x: Any) -> Any:
            with mr.GradientTape() as tape:
                tape.watch(x)
                y = mr.ensure_shape(call(twice, [x], mr.float32), (2,)) * 3.0
            return tape.gradient(y, x)

        return step(mr.constant(X))

    assert gradient(mr.numpy_function) is None
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match=r"mr\.custom_gradient"):
        gradient(mr.py_function)


def test_a_spec_says_the_shape() -> None:
    spec = mr.TensorSpec([2], mr.float32)
    function = mr.function(lambda x: mr.py_function(lambda x: x * x, [x], spec) + 1.0)
    np.testing.assert_array_equal(function(mr.constant(X)), X * X + 1)


@both
def test_replicas_call_it_one_after_the_other(call: OneOfBoth, simulate: Any) -> None:
    """Also where each would have a thread: it may wait there for the thread that called."""
    simulate(2)
    strategy = mr.MirroredStrategy(executor="threads")
    seen, threads = mr.Variable(0.0), set()

    def count(x: Any) -> Any:
        threads.add(threading.get_ident())
        seen.assign_add(1.0)
        return np.asarray(x) + 1

    @mr.function
    def step(x: Any) -> Any:
        return strategy.run(
            lambda x: mr.ensure_shape(call(count, [x], mr.float32), (2,)) * 2.0, (x,)
        )

    for _ in range(2):
        parts = strategy.experimental_local_results(step(mr.constant(X)))
    np.testing.assert_array_equal([each.numpy() for each in parts], [(X + 1) * 2] * 2)
    assert (float(seen), threads) == (4, {threading.get_ident()})


@both
def test_not_on_a_card(call: OneOfBoth, emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match="real GPU"):
        mr.function(lambda x: call(twice, [x], mr.float32))(mr.constant(X))


@both
def test_a_layer_that_calls_it_is_trained(call: OneOfBoth) -> None:
    class Rounded(mr.layers.Layer):
        def call(self, inputs: Any) -> Any:
            y = call(lambda x: np.round(np.asarray(x)), [inputs], mr.float32)
            return inputs + mr.stop_gradient(mr.ensure_shape(y, inputs.shape) - inputs)

    def trained(*, eagerly: bool) -> Any:
        mr.random.set_seed(1)
        model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(4), Rounded()])
        model.compile("sgd", "mse", run_eagerly=eagerly)
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(8, 3)), rng.normal(size=(8, 4))
        model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    for recorded, eager in zip(trained(eagerly=False), trained(eagerly=True), strict=True):
        np.testing.assert_array_equal(recorded, eager)
