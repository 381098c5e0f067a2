"""Data, weights and losses whose rank is not quite the model's: what Keras makes of them.

Numbers were printed by Keras 3.15 on TensorFlow 2.21 for the same model and data, on one device;
any number of replicas is held to them.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.linspace(-1, 1, 7 * 4 * 3, dtype=np.float32).reshape(7, 4, 3)
Y = np.cos(np.arange(7 * 4 * 2, dtype=np.float32)).reshape(7, 4, 2)
ROW = np.linspace(0.5, 2, 7)  # A weight for each example.
STEP = np.linspace(0.5, 2, 28).reshape(7, 4)  # A weight for each of its losses.


def squared(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
    """Return one number for the batch."""
    return mr.reduce_mean(mr.square(y_true - y_pred))


def sequence(strategy: mr.MirroredStrategy, loss: Any, **options: Any) -> mr.Model:
    with strategy.scope():
        dense = mr.layers.Dense(2, use_bias=False, kernel_initializer="ones")
        model = mr.Sequential([mr.layers.Input((4, 3)), dense])
        model.compile(mr.optim.SGD(0.01), loss, **options)
    return model


SUM = mr.losses.MeanSquaredError(reduction="sum")
BY_ROW = [
    [4.5875115394592285, 4.127327919006348],
    [3.6836397647857666, 3.313974380493164],
    [4.535608768463135, 4.066709995269775],
    [3.670009136199951, 3.3018624782562256],
]
BY_STEP = [
    [4.598591327667236, 4.145158290863037],
    [3.681671142578125, 3.3180809020996094],
    [4.532346725463867, 4.071249485015869],
    [3.678873062133789, 3.316126823425293],
]
SCALAR = [3.674715518951416, 3.4332029819488525]
# Loss, weights; loss, mse, the scalar metric and the weighted mse; the sum of the weights.
FITS: dict[str, tuple[Any, Any, list[list[float]], float]] = {
    "weights (7, 1)": ("mse", ROW[:, None], BY_ROW, 5.286506652832031),
    "weights (7, 1, 1)": ("mse", ROW[:, None, None], BY_ROW, 5.286506652832031),
    "weights (7, 4)": ("mse", STEP, BY_STEP, 5.297756195068359),
    "weights (7, 4, 1)": ("mse", STEP[..., None], BY_STEP, 5.297756195068359),
    "a scalar loss": (
        squared,
        None,
        [SCALAR, SCALAR, [4.523528575897217, 4.21728515625], SCALAR],
        5.532591342926025,
    ),
    "the sum of all losses": (
        SUM,
        None,
        [
            [32.53578567504883, 20.185632705688477],
            [3.2132034301757812, 1.9761027097702026],
            [3.6702308654785156, 2.222890853881836],
            [3.2132034301757812, 1.9761027097702026],
        ],
        3.1997148990631104,
    ),
    "the weighted sum of all losses": (
        SUM,
        STEP,
        [
            [34.31576156616211, 19.2947940826416],
            [3.287349224090576, 1.784559965133667],
            [3.763787031173706, 2.0014562606811523],
            [3.090085744857788, 1.69473397731781],
        ],
        2.685046434402466,
    ),
}


@pytest.mark.behaviour("sample-weights", "scalar-loss")
@pytest.mark.parametrize(("loss", "weights", "expected", "total"), FITS.values(), ids=FITS)
def test_weights_and_losses_as_in_keras(
    loss: Any,
    weights: Any,
    expected: list[list[float]],
    total: float,
    strategy: mr.MirroredStrategy,
) -> None:
    model = sequence(strategy, loss, metrics=["mse", squared], weighted_metrics=["mse"])
    options: dict[str, Any] = {"batch_size": 3, "epochs": 2, "shuffle": False, "verbose": 0}
    history = model.fit(X, Y, sample_weight=weights, **options).history
    # Uneven shards and a shorter last batch: the scalar metric is a mean of batches, as in Keras.
    assert list(history) == ["loss", "mse", "squared", "weighted_mse"]
    for (name, values), wanted in zip(history.items(), expected, strict=True):
        assert values == pytest.approx(wanted, rel=1e-6), name
    assert model.get_weights()[0].sum() == pytest.approx(total, rel=1e-6)


@pytest.mark.behaviour("sample-weights")
def test_one_weight_an_example_weighs_all_of_its_losses(strategy: mr.MirroredStrategy) -> None:
    """Keras broadcasts a vector along the last axis of the losses, where it is the examples'."""
    results = []
    for weights in (ROW, ROW[:, None]):
        model = sequence(strategy, "mse", weighted_metrics=["mse"])
        results.append(model.evaluate(X, Y, sample_weight=weights, verbose=0))
    assert results[0] == results[1]


REFUSED_WEIGHTS: dict[str, tuple[Any, Any, str]] = {
    "another size": ("mse", np.ones((7, 3)), r"broadcast to \(7, 4\). Received: .* \(7, 3\)"),
    "the last axis": ("mse", np.ones((7, 4, 2)), r"broadcast to \(7, 4\). Received: .*\(7, 4, 2\)"),
    "another axis": ("mse", np.ones((7, 1, 4)), r"broadcast to \(7, 4\). Received: .*\(7, 1, 4\)"),
    "of a scalar": (squared, ROW, r"loss 'squared' returned one number.*do not apply. Received: "),
}


@pytest.mark.behaviour("sample-weights", "scalar-loss")
@pytest.mark.parametrize(
    ("loss", "weights", "message"), REFUSED_WEIGHTS.values(), ids=REFUSED_WEIGHTS
)
def test_refused_weights_change_nothing(
    loss: Any, weights: Any, message: str, strategy: mr.MirroredStrategy
) -> None:
    model = sequence(strategy, loss)
    before = model.get_weights()[0]
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        model.fit(mr.data.Dataset.from_tensor_slices((X, Y, weights)).batch(7))
    np.testing.assert_array_equal(model.get_weights()[0], before)
    model.fit(X, Y, verbose=0)


@pytest.mark.behaviour("scalar-loss")
def test_weights_of_examples_and_a_metric_of_one_number(strategy: mr.MirroredStrategy) -> None:
    model = sequence(strategy, "mse", weighted_metrics=[squared])
    with pytest.raises(ValueError, match=r"The metric 'squared' returned one number for the batch"):
        model.evaluate(X, Y, sample_weight=ROW, verbose=0)


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_metrics_of_other_dtypes(dtype: str, strategy: mr.MirroredStrategy) -> None:
    """They are counted in the outputs' dtype, beside the loss."""

    def some(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        return mr.cast(mr.reduce_mean(mr.zeros_like(y_pred) + 1.0), dtype)

    def each(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        return mr.cast(mr.zeros_like(y_pred) + 1.0, dtype)

    model = sequence(strategy, "mse", metrics=[some, each])
    assert model.evaluate(X, Y, batch_size=3, verbose=0)[1:] == pytest.approx([1.0, 1.0])


# ------------------------------------------------------------------------------ the inputs

FLAT = np.arange(7, dtype=np.float32)
Line = Callable[..., mr.Model]


def batches(x: Any, y: Any) -> Any:
    return ((x[i : i + 3], y[i : i + 3]) for i in range(0, 7, 3))


SAME: dict[str, Callable[[], tuple[Any, ...]]] = {
    "both flat": lambda: (FLAT, 2 * FLAT),
    "flat inputs": lambda: (FLAT, 2 * FLAT[:, None]),
    "flat targets": lambda: (FLAT[:, None], 2 * FLAT),
    "an axis too many": lambda: (FLAT[:, None, None], 2 * FLAT),
    "lists": lambda: (FLAT.tolist(), (2 * FLAT).tolist()),
    "a dataset": lambda: (mr.data.Dataset.from_tensor_slices((FLAT, 2 * FLAT)).batch(3),),
    "a generator": lambda: (batches(FLAT, 2 * FLAT),),
}


_as_columns: list[Any] = []  # What all of them come to, once it is known.


@pytest.mark.behaviour("input-rank")
@pytest.mark.parametrize("data", SAME.values(), ids=SAME)
def test_inputs_get_the_rank_of_the_model(data: Any, make_line: Line) -> None:
    def run(*arguments: Any) -> Any:
        model = make_line(metrics=["mse"])
        size = {"batch_size": 3} if len(arguments) > 1 else {}
        fitted = model.fit(*arguments, shuffle=False, verbose=0, **size).history
        return fitted, model.evaluate(FLAT[:, None], 2 * FLAT, verbose=0)

    if not _as_columns:
        _as_columns.append(run(FLAT[:, None], 2 * FLAT[:, None]))
    assert run(*data()) == _as_columns[0]


@pytest.mark.behaviour("input-rank")
@pytest.mark.parametrize("x", [FLAT, FLAT[:, None], FLAT[:, None, None]])
def test_prediction_and_calls(x: Any, make_line: Line) -> None:
    model = make_line()
    validated = model.fit(FLAT, FLAT, validation_data=(x, FLAT), verbose=0).history
    assert np.isfinite(validated["val_loss"]).all()
    expected = model.predict(FLAT[:, None], verbose=0)
    np.testing.assert_array_equal(model.predict(x, verbose=0), expected)
    np.testing.assert_array_equal(model.predict(iter([x]), verbose=0), expected)
    np.testing.assert_allclose(model(x).numpy(), expected, rtol=1e-6)


IMAGES = np.arange(2 * 4 * 4, dtype=np.float32).reshape(2, 4, 4)


@pytest.mark.behaviour("input-rank")
@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 1)])
def test_images_with_and_without_their_one_channel(shape: Any) -> None:
    begin = mr.layers.Input(shape)
    inner = mr.Sequential([mr.layers.Flatten(input_shape=shape)])
    outer = mr.Sequential([mr.layers.Input((4, 4)), inner])  # As the inner one is connected, too.
    for model in (mr.Model(begin, mr.layers.Flatten()(begin)), inner, outer):
        assert model.output_shape == (None, 16)
        for images in (IMAGES, IMAGES[..., None]):
            assert model.predict(images, verbose=0).tolist() == IMAGES.reshape(2, 16).tolist()


def test_a_sequential_keeps_to_the_rank_of_its_first_data() -> None:
    model = mr.Sequential([mr.layers.Dense(1)])
    expected = model.predict(FLAT[:, None], verbose=0)
    np.testing.assert_array_equal(model.predict(FLAT, verbose=0), expected)


@pytest.mark.behaviour("input-rank")
def test_inputs_that_do_not_fit() -> None:
    model = mr.Sequential([mr.layers.Flatten(input_shape=(4, 4))])
    for shape in ((2, 4, 4, 2), (2, 16), (2, 4, 4, 1, 1), (2, 5, 4, 1)):
        with pytest.raises(ValueError, match=r"expected shape=\(None, 4, 4\), found shape="):
            model.predict(np.zeros(shape), verbose=0)

    class Line(mr.Model):  # Of a `call` of one's own nobody knows which rank it wants.
        def __init__(self) -> None:
            super().__init__()
            self.dense = mr.layers.Dense(1)

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.dense(inputs)

    with pytest.raises(ValueError, match="expected min_ndim=2, found ndim=1"):
        Line().predict(FLAT, verbose=0)


class Folded(mr.Model):
    """Makes one step of each two, with a `call` of its own."""

    def __init__(self, layers: list[mr.layers.Layer]) -> None:
        super().__init__()
        self.steps = layers

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        """Return the outputs."""
        for layer in self.steps:
            inputs = layer(inputs)
        return inputs


def of_lengths(*lengths: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of as many steps."""
    for count in lengths:
        x = np.linspace(-1, 1, 3 * count * 4, dtype=np.float32).reshape(3, count, 4)
        yield x, np.cos(np.arange(3 * count / 2, dtype=np.float32)).reshape(3, count // 2, 1)


@pytest.mark.behaviour("varying-axes")
@pytest.mark.parametrize("kind", [mr.Sequential, Folded])
def test_further_axes_may_vary(kind: Any, strategy: mr.MirroredStrategy) -> None:
    """The first batch says what the weights are, not how long the others are."""
    with strategy.scope():
        dense = mr.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        model = kind([mr.layers.Reshape((-1, 8)), dense])
        model.compile(mr.optim.SGD(0.01), "mse", metrics=["mae"])
    validation = of_lengths(4, 12)
    fitted = model.fit(of_lengths(12, 20, 6), validation_data=validation, verbose=0).history
    found = [*[each[0] for each in fitted.values()], *model.train_on_batch(*next(of_lengths(16)))]
    found += model.evaluate(of_lengths(8, 2), verbose=0)
    expected = [20.5615616, 3.8565631, 17.9761219, 3.7200844]
    expected += [16.7638092, 3.4343662, 16.8260059, 3.4498789]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[0].sum(), 6.3796668, rtol=1e-5)
    x, y = next(of_lengths(10))
    with pytest.raises(ValueError, match=r"output shape \(None, 5, 1\). .* shape \(3, 4, 1\)"):
        model.train_on_batch(x, y[:, :4])
    with pytest.raises(ValueError, match=r"`predict` joins .* \(3, 5, 1\) and \(3, 6, 1\)"):
        model.predict(of_lengths(10, 12), verbose=0)


def test_single_examples_are_still_no_batches(make_line: Line) -> None:
    data = mr.data.Dataset.from_tensor_slices((FLAT[:, None], 2 * FLAT))
    with pytest.raises(ValueError, match=r"`.batch\(batch_size\)`"):
        make_line().fit(data)
