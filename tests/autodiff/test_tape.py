"""The gradient tape."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from mirrored import devices, ops
from mirrored.autodiff import GradientTape, recording
from mirrored.ops.hooks import active_listeners
from mirrored.variables import Variable


@pytest.fixture(autouse=True)
def no_warnings() -> None:
    recording._warnings.clear()


def test_watched_tensor() -> None:
    x = ops.constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_what_is_not_watched_has_no_gradient() -> None:
    x, c = ops.constant(3.0), ops.constant(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * c
    by_x, by_c = tape.gradient(y, [x, c])
    assert float(by_x) == 2.0
    assert by_c is None


def test_what_was_computed_before_the_watch_is_a_constant() -> None:
    x = ops.constant(3.0)
    with GradientTape() as tape:
        before = x * x
        tape.watch(x)
        y = before * x
    assert float(tape.gradient(y, x)) == 9.0


def test_structures_of_sources_and_targets() -> None:
    x, y = ops.constant([1.0, 2.0]), ops.constant(3.0)
    with GradientTape() as tape:
        tape.watch({"x": x, "more": (y,)})
        targets = [x * y, {"square": y * y}]
    found = tape.gradient(targets, {"x": x, "more": (y, [x])})
    np.testing.assert_array_equal(found["x"].numpy(), [3.0, 3.0])
    assert float(found["more"][0]) == 9.0
    np.testing.assert_array_equal(found["more"][1][0].numpy(), [3.0, 3.0])


def test_uses_add_up() -> None:
    x = ops.constant(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x * x + x + ops.add_n([x, x, x])
    assert float(tape.gradient(y, x)) == 16.0


def test_a_source_on_the_way_of_another() -> None:
    x = ops.constant(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        middle = x * x
        y = middle * 3.0
    by_x, by_middle, by_y = tape.gradient(y, [x, middle, y])
    assert (float(by_x), float(by_middle), float(by_y)) == (12.0, 3.0, 1.0)


def test_output_gradients() -> None:
    x = ops.constant([1.0, 2.0])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * 3.0
    found = tape.gradient(y, x, output_gradients=ops.constant([10.0, 20.0]))
    np.testing.assert_array_equal(found.numpy(), [20.0, 80.0])
    found = tape.gradient([y, z], x, output_gradients=[None, ops.constant([1.0, 0.0])])
    np.testing.assert_array_equal(found.numpy(), [5.0, 4.0])
    with pytest.raises(ValueError, match=r"Received: \(3,\) for a target of shape \(2,\)"):
        tape.gradient(y, x, output_gradients=ops.constant([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="1 for 2 targets"):
        tape.gradient([y, z], x, output_gradients=[ops.constant([1.0, 2.0])])


def test_unconnected() -> None:
    x, other = ops.constant([1.0, 2.0]), Variable([[3.0]])
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2.0
    assert tape.gradient(y, other) is None
    zero = tape.gradient(y, [x, other], unconnected_gradients="zero")[1]
    np.testing.assert_array_equal(zero.numpy(), [[0.0]])
    assert tape.gradient(3.0, x) is None
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'foo'"):
        tape.gradient(y, x, unconnected_gradients="foo")


def test_a_tape_that_is_not_persistent_is_used_once() -> None:
    x = ops.constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="only be used to compute one set of gradients"):
        tape.gradient(y, x)


def test_bad_arguments_do_not_use_it_up() -> None:
    x = ops.constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match=r"Sources must be tensors or variables. Received: 3\.0"):
        tape.gradient(y, [x, 3.0])
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.gradient(y, x, unconnected_gradients="foo")
    with pytest.raises(ValueError, match="An output gradient must have the shape of its target"):
        tape.gradient(y, x, output_gradients=ops.constant([1.0]))
    assert float(tape.gradient(y, x)) == 6.0


def test_persistent() -> None:
    x = ops.constant(3.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
        inside = tape.gradient(y, x)
    assert [float(tape.gradient(each, x)) for each in (y, z, y)] == [6.0, 108.0, 6.0]
    assert float(tape.gradient(inside, x)) == 2.0  # Gradients taken inside are followed too.


@pytest.mark.parametrize("bad", [3.0, "a", np.ones(2), [None]])
def test_watching_what_is_no_tensor(bad: Any) -> None:
    with GradientTape() as tape, pytest.raises(ValueError, match="Passed in object"):
        tape.watch(bad)


@pytest.mark.behaviour("watch-integers")
def test_watching_integers(caplog: pytest.LogCaptureFixture) -> None:
    """The log says that they have no gradient, as TensorFlow's does; what else is watched, is."""
    x, n = ops.constant(3.0), ops.constant(3)
    with GradientTape() as tape:
        tape.watch([x, n])
        y = x * x
        m = n * n
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "The dtype of the watched tensor must be floating (e.g. mr.float32), got int32"
    ]
    caplog.clear()
    by_x, by_n = tape.gradient([y, m], [x, n])
    assert float(by_x) == 6.0
    assert by_n is None
    when = "must be floating (e.g. mr.float32) when calling GradientTape.gradient, got int32"
    assert [each.getMessage() for each in caplog.records] == [
        f"The dtype of the source tensor {when}",
        f"The dtype of the target tensor {when}",
    ]


def test_the_log_is_not_filled_with_remarks(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(9):
        GradientTape().watch(ops.constant(3))
    assert sum("watched" in each.getMessage() for each in caplog.records) == 5


def test_higher_order() -> None:
    x = ops.constant(2.0)
    with GradientTape() as third:
        third.watch(x)
        with GradientTape() as second:
            second.watch(x)
            with GradientTape() as first:
                first.watch(x)
                y = x**5.0
            by_once = first.gradient(y, x)
        by_twice = second.gradient(by_once, x)
    by_thrice = third.gradient(by_twice, x)
    assert [float(each) for each in (by_once, by_twice, by_thrice)] == [80.0, 160.0, 240.0]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # TensorFlow 2.21's: of a slope that is a step, zeros and not None.
        (ops.relu, [0.0, 0.0, 0.0]),
        (lambda x: ops.relu(x * x), [2.0, 0.0, 2.0]),
        (ops.abs, [0.0, 0.0, 0.0]),
        (lambda x: 2.0 * x, None),
        (lambda x: ops.maximum(x, 0.0), None),
    ],
)
def test_second_gradients_of_pieces(function: Any, expected: list[float] | None) -> None:
    x = Variable([-2.0, 0.0, 3.0])
    with GradientTape() as second:
        with GradientTape() as first:
            y = function(x)
        by_once = first.gradient(y, x)
    by_twice = second.gradient(by_once, x)
    assert by_twice is None if expected is None else by_twice.numpy().tolist() == expected


def test_nested_tapes_are_independent() -> None:
    x = ops.constant(2.0)
    with GradientTape() as outer, GradientTape() as inner:
        outer.watch(x)
        y = x * x
    assert inner.gradient(y, x) is None
    assert float(outer.gradient(y, x)) == 4.0


def test_variables_are_watched_by_being_read() -> None:
    v, frozen, integer = Variable(3.0), Variable(2.0, trainable=False), Variable(4)
    with GradientTape() as tape:
        y = v * v * frozen * ops.cast(integer, "float32")
    first, second = tape.watched_variables()
    assert first is v
    assert second is integer  # As in TensorFlow, though it has no gradient.
    by_v, by_frozen, by_integer = tape.gradient(y, [v, frozen, integer])
    assert float(by_v) == 48.0
    assert by_frozen is None
    assert by_integer is None


def test_variables_may_be_watched_by_hand() -> None:
    v, frozen = Variable(3.0), Variable(2.0, trainable=False)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(frozen)
        y = v * frozen
    assert [each is frozen for each in tape.watched_variables()] == [True]
    by_v, by_frozen = tape.gradient(y, [v, frozen])
    assert by_v is None
    assert float(by_frozen) == 3.0


def test_the_value_as_it_was_read_is_used() -> None:
    v = Variable(3.0)
    with GradientTape() as tape:
        first = v * v
        v.assign(10.0)
        y = first + v
    assert float(tape.gradient(y, v)) == 7.0


def test_stop_recording() -> None:
    x, v = ops.constant(3.0), Variable(2.0)
    with GradientTape() as tape, GradientTape() as other:
        tape.watch(x)
        other.watch(x)
        with tape.stop_recording():
            y = x * v
        z = x * v
    assert tape.gradient(y + z, x) is None
    found = other.gradient([y, z], [x, v])
    assert [float(each) for each in found] == [4.0, 6.0]


def test_stop_recording_ends_with_an_error() -> None:
    x = ops.constant(3.0)
    with GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(KeyError), tape.stop_recording():
            raise KeyError
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


def test_an_error_inside_leaves_no_listener() -> None:
    with pytest.raises(ValueError, match="Incompatible shapes"), GradientTape(), GradientTape():
        ops.add([1.0, 2.0], [1.0, 2.0, 3.0])
    assert active_listeners() == ()


def test_entering_twice() -> None:
    x = ops.constant(3.0)
    tape = GradientTape()
    with tape:
        tape.watch(x)
        with pytest.raises(ValueError, match="already-active"), tape:
            pass
        y = x * x
    with tape:
        z = y * x
    assert active_listeners() == ()
    assert float(tape.gradient(z, x)) == 27.0


def test_memory_is_let_go_of(simulate: Any) -> None:
    simulate(1)
    pool = devices.get_device("GPU:0").pool
    x = ops.ones((1000,))
    with GradientTape() as tape:
        tape.watch(x)
        middle = ops.exp(x)
        alive = weakref.ref(middle)
        y = ops.reduce_sum(ops.square(middle))
        del middle
    assert alive() is not None
    gradient = tape.gradient(y, x)
    assert alive() is None
    del y, gradient
    assert pool.current == 4000


def test_backpropagation_lets_go_on_the_way(simulate: Any) -> None:
    """The gradients take the room of the values of the way forward."""
    simulate(1)
    pool = devices.get_device("GPU:0").pool
    weights = [ops.ones((1000,)) for _ in range(50)]
    y = ops.ones((1000,))
    with GradientTape() as tape:
        tape.watch(weights)
        for weight in weights:
            y = ops.tanh(y * weight)
    held = pool.current
    pool.reset_peak()
    gradients = tape.gradient(y, weights)
    assert held > 150 * 4000
    assert pool.peak < held + 10 * 4000
    assert len(gradients) == 50
    assert pool.current < 105 * 4000


def test_a_used_tape_that_is_still_open_holds_nothing() -> None:
    x, v = ops.constant(3.0), Variable(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        tape.gradient(x * v, x)
        read = v.read_value()
        later = x * read
        alive = [weakref.ref(read), weakref.ref(later)]
        del read, later
        gc.collect()
        assert [each() for each in alive] == [None, None]


def test_gradients_are_where_the_values_were(simulate: Any) -> None:
    simulate(2)
    with devices.device("GPU:1"):
        x, unused = ops.constant([1.0, 2.0]), ops.constant([1.0])
        with GradientTape() as tape:
            tape.watch([x, unused])
            y = ops.reduce_sum(x * x)
    by_x, by_unused = tape.gradient(y, [x, unused], unconnected_gradients="zero")
    assert by_x.device.endswith("GPU:1")
    assert by_unused.device.endswith("GPU:1")


def test_gradients_across_devices(simulate: Any) -> None:
    simulate(2)
    v = Variable([1.0, 2.0])
    with GradientTape() as tape:
        with devices.device("GPU:1"):
            y = v * v
        with devices.device("CPU:0"):
            z = ops.reduce_sum(y * v)
    np.testing.assert_array_equal(tape.gradient(z, v).numpy(), [3.0, 12.0])


def test_a_whole_network_by_differences() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((5, 4)), rng.integers(0, 3, 5)
    shapes = [(4, 6), (6,), (6, 3), (3,)]
    values = [rng.standard_normal(shape) for shape in shapes]
    directions = [rng.standard_normal(shape) for shape in shapes]

    def loss(weights: list[Any]) -> ops.Tensor:
        hidden = ops.tanh(ops.bias_add(ops.matmul(x, weights[0]), weights[1]))
        logits = ops.bias_add(ops.matmul(hidden, weights[2]), weights[3])
        penalty = ops.add_n([ops.reduce_sum(ops.square(each)) for each in weights])
        entropy = ops.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return ops.reduce_mean(entropy) + 0.01 * penalty

    variables = [Variable(each) for each in values]
    with GradientTape() as tape:
        target = loss(variables)
    gradients = tape.gradient(target, variables)
    exact = sum(np.sum(g.numpy() * d) for g, d in zip(gradients, directions, strict=True))
    moved = [
        float(loss([ops.constant(v + by * d) for v, d in zip(values, directions, strict=True)]))
        for by in (1e-6, -1e-6)
    ]
    assert exact == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-7)


def test_reset() -> None:
    x, v = ops.constant(3.0), Variable(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        before = x * v
        tape.reset()
        after = before * v
    assert [each is v for each in tape.watched_variables()] == [True]
    by_x, by_v = tape.gradient(after, [x, v])
    assert by_x is None
    assert float(by_v) == 6.0


def test_what_does_not_record_is_not_stopped() -> None:
    tape = GradientTape()
    for refused in (tape.stop_recording, tape.reset):
        with pytest.raises(ValueError, match="Tape is not recording"):
            refused()
    x = ops.constant(3.0)
    with tape:
        with tape.stop_recording(), pytest.raises(ValueError, match="Tape is not recording"):
            tape.reset()
        tape.watch(x)
        tape.gradient(x * x, x)
        with pytest.raises(RuntimeError, match="Trying to stop recording"):
            tape.stop_recording()
    with tape:  # Entered again it is as new.
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
