"""Parts of graphs: what leads from some placeholders to others, run and drawn again."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.graph import Drawing, Part
from mirrored.layers import Dense, Dropout, Flatten, Input, Layer

A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
DEEP = sys.getrecursionlimit() + 100


@pytest.mark.behaviour("graph-inputs")
def test_any_placeholders_may_be_given_and_asked_for() -> None:
    """As a session feeds and fetches."""
    x, y = Input((4,)), Input((4,))
    left, right = mr.split(x * 2.0, 2, axis=1)
    whole = mr.concat([left, right], axis=1) + y
    tensor, halves = mr.constant(A), [mr.constant(A[:, :2]), mr.constant(A[:, 2:])]
    run = Part([x, y], [whole, left, x]).run
    results = run([tensor, tensor])
    for result, expected in zip(results, [A * 3, A[:, :2] * 2, A], strict=True):
        np.testing.assert_allclose(result.numpy(), expected)
    (result,) = Part([y, left, right], whole).run([tensor, *halves])
    np.testing.assert_allclose(result.numpy(), A * 2)
    # Where one of two results is given, the other is computed.
    (result,) = Part([x, y, left], whole).run([tensor, tensor, halves[0] * 0.0])
    np.testing.assert_allclose(
        result.numpy(), A + np.hstack([A[:, :2] * 0, A[:, 2:] * 2]), rtol=1e-6
    )
    with pytest.raises(ValueError, match=r"Output with path `1\.b` is not connected to `inputs`"):
        Part([x], [left, {"b": whole}])


def test_lists_may_change_afterwards() -> None:
    pair = [Input((4,)), Input((4,))]
    outputs = {"sum": mr.layers.add(pair), "joined": mr.concat(pair, axis=1)}
    model = mr.Model(pair, outputs)
    pair.append(Input((4,)))
    outputs["more"] = pair[0]
    results = model([A, A])
    assert list(results) == ["sum", "joined"]
    np.testing.assert_array_equal(results["sum"].numpy(), A + A)
    np.testing.assert_array_equal(results["joined"].numpy(), np.hstack([A, A]))


def test_a_part_is_recorded_as_any_function() -> None:
    x, y = Input((4,)), Input((4,))
    dense = Dense(2)
    part = Part([x, y], [dense(x) + dense(y), mr.reshape(x, (mr.shape(y)[0], 2, 2))])

    @mr.function
    def run(one: mr.Tensor, other: mr.Tensor) -> list[mr.Tensor]:
        return part.run([one, other])

    for rows in (3, 2):
        given = [mr.constant(A[:rows]), mr.constant(-A[:rows] + 1)]
        for result, expected in zip(run(*given), part.run(given), strict=True):
            np.testing.assert_array_equal(result.numpy(), expected.numpy())


class Twice(Layer):
    """Returns as many tensors as it is told when it runs."""

    count = 2

    def call(self, inputs: mr.Tensor) -> Any:
        return [inputs] * self.count


def test_a_layer_returns_as_many_tensors_in_every_call() -> None:
    x, layer = Input((4,)), Twice(name="twice")
    model = mr.Model(x, layer(x))
    layer.count = 3
    with pytest.raises(ValueError, match="The call of 'twice' returned 3 tensors, and 2 when the"):
        model(A)


def test_a_device_scope_is_kept() -> None:
    mr.config.experimental.set_simulated_gpus(2)
    x = Input((4,))
    with mr.device("GPU:1"):
        y = x * 2.0
        model = mr.Model(x, [y, Flatten()(y)])
    assert {each.device[-5:] for each in model(A)} == {"GPU:1"}
    assert model(A)[0].device != (model.inputs[0].node.device or "")
    with mr.device("GPU:0"):
        assert {each.device[-5:] for each in model(A)} == {"GPU:1"}


@cases(
    ("training", "fit", "drops"),
    # As in Keras 3.15: the mode of the model's call wins, where it says one.
    [(True, None, True), (True, False, False), (None, True, True), (None, None, False)],
)
def test_a_mode_in_the_graph(training: bool | None, fit: bool | None, drops: bool) -> None:
    x = Input((4,))
    model = mr.Model(x, Dropout(0.5, seed=1)(x, training=training))
    assert (0 in model(np.ones((8, 4)), training=fit).numpy()) is drops


def test_deep_graphs_need_no_deep_stack() -> None:
    x = Input((4,))
    y = x
    for _ in range(DEEP):
        y = y + 1.0
    shared = Dense(4)
    for _ in range(20):
        y = shared(y)
    model = mr.Model(x, y)
    expected = model(A).numpy()
    for each in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert [op.name for op in each.operations] == [op.name for op in model.operations]
        np.testing.assert_array_equal(each(A).numpy(), expected)
        assert each.layers[1].output.node.callee is each.layers[1]
    again = pickle.loads(pickle.dumps(y))
    assert (again.shape, again.name) == (y.shape, y.name)
    # A size that was only found for others is found again all along.
    for _ in range(DEEP // 2):
        x = mr.reshape(x, (-1,))
        x = mr.reshape(x, (-1, 4))
    assert mr.split(mr.reshape(x, (-1,)), 16)[0].shape == (None,)


def test_a_drawing_begins_where_it_is_told() -> None:
    x = Input((4,), name="x")
    hidden = x * 2.0
    y = hidden + 1.0
    given = Input((4,), name="given")
    _, (drawn,) = Drawing([hidden], [y]).drawn([given], suffix="_clone")
    assert drawn.name == f"{y.name}_clone"
    np.testing.assert_array_equal(Part([given], [drawn]).run([mr.constant(A)])[0].numpy(), A + 1)


def test_layers_know_their_calls() -> None:
    """As in Keras 3.15, `input` and `output` are those of the first call."""
    layer = Dense(2, name="dense")
    for which in ("input", "output"):
        with pytest.raises(
            AttributeError, match=f"never been called and thus has no defined {which}"
        ):
            getattr(layer, which)
    x, y = Input((4,)), Input((4,))
    first, second = layer(x), layer(y)
    assert (layer.input, layer.output, len(layer._inbound_nodes)) == (x, first, 2)
    assert second.node.callee is layer
    model = mr.Model([x, y], [first, second])
    part = mr.Model(model.inputs, model.get_layer("dense").output)
    np.testing.assert_array_equal(part([A, A]).numpy(), model([A, A])[0].numpy())
    joined = mr.layers.Add()([x, y])
    assert joined.node.callee.input == [x, y]  # type: ignore[attr-defined]
