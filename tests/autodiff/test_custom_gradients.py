"""Functions with gradients of their own. The numbers are TensorFlow 2.21's."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases
from listing import listed

import mirrored as mr

Programs = dict[str, tuple[Callable[[Any, Any, Any], Any], Any]]


def own(function: Callable[..., Any], gradient: Callable[..., Any]) -> Any:
    """Return a function with a gradient that is given."""
    return mr.custom_gradient(lambda *args: (function(*args), gradient))


def keyword(x: Any, k: Any) -> Any:
    """Return a product whose second factor has no gradient."""
    return mr.custom_gradient(lambda x, k: (x * k, lambda g: g * 10.0))(x, k=k)


def of_variables(v: Any, gradient: Callable[..., Any]) -> Any:
    return mr.custom_gradient(lambda x: (x * v * v, gradient))


class Scaled:
    scale = 5.0

    @mr.custom_gradient
    def call(self, x: Any) -> Any:
        return x * self.scale, lambda g: g * self.scale * 100.0


def by_two(g: Any, h: Any) -> Any:
    return g * 100.0 + h


def kept(g: Any, variables: Any = None) -> Any:
    return g * 10.0, [g * 100.0 for _ in variables]


def named(g: Any, **options: Any) -> Any:
    return kept(g, options["variables"])


def first_and_second(x: Any) -> Any:
    """Return a square whose gradient has a gradient of its own."""
    slope = own(lambda g, x: g * x * 2.0, lambda d: (d * 1000.0, d * 7.0))
    return mr.custom_gradient(lambda x: (x * x, lambda g: slope(g, x)))(x)


# From tensors of 2 and 3 and a variable of 4 to a target; and its gradients by these.
FIRST: Programs = {
    "one": (lambda x, y, v: own(lambda x: x * x, lambda g: g * 9.0)(x) * y, [27.0, 4.0, None]),
    "one of two": (lambda x, y, v: own(mr.multiply, lambda g: g)(x, y), ValueError),
    "both": (lambda x, y, v: own(mr.multiply, lambda g: (g, None))(x, y), [1.0, None, None]),
    "numbers": (lambda x, y, v: own(mr.multiply, lambda g: (3.0, 4))(x, 2.0), [3.0, None, None]),
    "none": (lambda x, y, v: own(mr.square, lambda g: None)(x), [None, None, None]),
    "many results": (
        lambda x, y, v: own(lambda x: (x * 2.0, x * 3.0), by_two)(x)[1] * y,
        [3.0, 6.0, None],
    ),
    "nested": (
        lambda x, y, v: mr.custom_gradient(
            lambda d: ({"q": d["b"][0], "p": [d["a"]]}, lambda p, q: {"b": [p], "a": q * 50.0})
        )({"b": [y], "a": x})["p"][0],
        [0.0, 1.0, None],
    ),
    "the argument": (lambda x, y, v: own(lambda x: x, lambda g: g * 5.0)(x), [5.0, None, None]),
    "keywords": (lambda x, y, v: keyword(x, y), [10.0, None, None]),
    "a method": (lambda x, y, v: Scaled().call(x), [500.0, None, None]),
    "not watched": (lambda x, y, v: own(lambda c: c * x, lambda g: g)(7.0), [7.0, None, None]),
    "variable": (lambda x, y, v: of_variables(v, kept)(x) * v, [40.0, None, 432.0]),
    "options": (lambda x, y, v: of_variables(v, named)(x), [10.0, None, 100.0]),
    "as argument": (
        lambda x, y, v: own(mr.multiply, lambda g: (g, g * 7.0))(v, v),
        [None, None, 8.0],
    ),
    "no variables": (lambda x, y, v: of_variables(v, lambda g: g)(x), TypeError),
    "too few": (lambda x, y, v: of_variables(v, lambda g, variables: (g, []))(x), ValueError),
    "no pair": (lambda x, y, v: mr.custom_gradient(mr.square)(x), TypeError),
    "no function": (lambda x, y, v: mr.custom_gradient(lambda x: (x, x))(x), TypeError),
    "three": (lambda x, y, v: mr.custom_gradient(lambda x: (x, x, x))(x), ValueError),
    "an object": (lambda x, y, v: own(lambda x, o: x, lambda g: g)(x, object()), ValueError),
    "nothing": (lambda x, y, v: own(lambda x: None, lambda g: g)(x), ValueError),
    "passing": (lambda x, y, v: mr.grad_pass_through(mr.round)(x * 1.3), [1.3, None, None]),
    "passing into": (lambda x, y, v: mr.grad_pass_through(v.assign)(x * y), [3.0, 2.0, None]),
    "passed": (lambda x, y, v: mr.grad_pass_through(lambda x: x * v)(x) * v, [4.0, None, 8.0]),
    "again": (
        lambda x, y, v: mr.recompute_grad(lambda x, y: [x * y * v, x])(x, y)[0],
        [12.0, 8.0, 6.0],
    ),
}


@pytest.mark.behaviour("custom-gradient")
@cases(("program", "expected"), FIRST.values(), ids=FIRST)
@cases("recorded", [False, True])
def test_gradients(program: Callable[..., Any], expected: Any, recorded: bool) -> None:
    v = mr.Variable(4.0)

    def step(x: Any, y: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch([x, y])
            target = program(x, y, v)
        return tape.gradient(target, [x, y, v])

    run = mr.function(step) if recorded else step
    if isinstance(expected, type):
        with pytest.raises(expected, match="custom_gradient"):
            run(mr.constant(2.0), mr.constant(3.0))
    else:
        found = listed(run(mr.constant(2.0), mr.constant(3.0)))
        assert found == pytest.approx(expected)


SECOND: Programs = {
    "composed": (lambda x, y, v: own(lambda x: x**3.0, lambda g: g * 3.0 * x * x)(x), [12.0, 12.0]),
    "of its own": (lambda x, y, v: first_and_second(x), [4.0, 7.0]),
    "again": (lambda x, y, v: mr.recompute_grad(lambda x: x**3.0)(x), [12.0, 12.0]),
}


@cases(("program", "expected"), SECOND.values(), ids=SECOND)
def test_second_gradients(program: Callable[..., Any], expected: Any) -> None:
    x = mr.constant(2.0)
    with mr.GradientTape() as outer:
        outer.watch(x)
        with mr.GradientTape() as inner:
            inner.watch(x)
            target = program(x, x, None)
        by_once = inner.gradient(target, x)
    assert listed([by_once, outer.gradient(by_once, x)]) == expected


@pytest.mark.parametrize("recorded", [False, True])
def test_on_replicas(recorded: bool, simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(4.0)

    def replica() -> Any:
        with mr.GradientTape() as tape:
            target = of_variables(v, kept)(mr.constant(2.0))
        return tape.gradient(target, v)

    def run() -> Any:
        return strategy.run(replica)

    found = (mr.function(run) if recorded else run)()
    assert [float(each) for each in strategy.experimental_local_results(found)] == [100.0, 100.0]


def test_what_is_computed_again_is_not_kept() -> None:
    calls = []

    def block(x: Any) -> Any:
        calls.append(x)
        return mr.tanh(mr.tanh(x))

    x = mr.constant(0.5)
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = mr.recompute_grad(block)(mr.recompute_grad(block)(x))
    assert [len(tape._nodes), len(calls)] == [2, 2]
    with mr.GradientTape() as plain:
        plain.watch(x)
        z = block(block(x))
    assert float(tape.gradient(y, x)) == float(plain.gradient(z, x))
    assert len(calls) == 2 + 2 + 2


def test_a_decorator_keeps_the_name() -> None:
    @mr.custom_gradient()
    def double(x: Any) -> Any:
        """Return x twice."""
        return x * 2.0, lambda g: g

    assert (double.__name__, double.__doc__) == ("double", "Return x twice.")
