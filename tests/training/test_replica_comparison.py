"""`compare_replicas`: steps that any number of replicas makes as one does, and others by name."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from card_training import make_devices
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError, NonFiniteLossError
from mirrored.ops.random import global_state
from mirrored.training.step_values import Event, Tolerances, Value

RNG = np.random.default_rng(7)
X = RNG.normal(size=(8, 3)).astype("float32")
Y = (X[:, :1] * 2.0 - X[:, 1:2] + 0.3).astype("float32")
W = RNG.uniform(0.5, 2.0, size=8).astype("float32")
compare = mr.debugging.compare_replicas


class Own(mr.Model):
    """A model with a step whose parts the cases below change."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tracker = mr.metrics.Mean(name="tracked")
        self.steps = Steps(name="steps")

    def loss_of(self, y: Any, predictions: Any) -> Any:
        """Return the loss."""
        return mr.reduce_mean((predictions - y) ** 2)

    def applied(self, gradients: list[Any]) -> list[Any]:
        """Return what the optimizer gets."""
        return gradients

    def logs(self, x: Any, loss: Any) -> dict[str, Any]:
        """Return what the step returns."""
        self.tracker.update_state(loss)
        return {"loss": loss, "tracked": self.tracker.result(), "kind": 3}

    def train_step(self, data: Any) -> dict[str, Any]:
        """Take one step."""
        x, y, _ = mr.keras.utils.unpack_x_y_sample_weight(data)
        with mr.GradientTape() as tape:
            loss = self.loss_of(y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(self.applied(gradients), self.trainable_variables)
        return self.logs(x, loss)


class Steps(mr.metrics.Metric):
    """Counts calls where it should count examples."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, *_: Any) -> None:
        """Count one."""
        self.count.assign_add(1.0)

    def result(self) -> Any:
        """Return how many."""
        return self.count


class Centred(mr.layers.Layer):
    """Has a state, or takes the mean of its batch off."""

    def __init__(self, what: str) -> None:
        super().__init__(name="centred")
        self.what = what

    def build(self, input_shape: Any) -> None:
        """Make the state."""
        mean = mr.VariableAggregation.MEAN
        self.state = self.add_weight(
            input_shape[-1:], "zeros", trainable=False, name="state", aggregation=mean
        )

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Update the state, and return the outputs."""
        mean = mr.reduce_mean(inputs, 0)
        if self.what == "batch":
            return inputs - mean
        if training:
            known = mr.math.reduce_variance(inputs, 0) if self.what == "variance" else mean
            self.state.assign(self.state * 0.9 + known * 0.1)
        return inputs


def made(kind: type[mr.Model] = Own, layer: Any = None, **options: Any) -> mr.Model:
    """Return a compiled model with dropout, a penalty, and perhaps a layer of one's own."""
    mr.random.set_seed(5)
    inputs = mr.layers.Input((3,))
    hidden = mr.layers.Dropout(0.3, name="dropped")(inputs)
    hidden = mr.layers.Dense(4, "tanh", kernel_regularizer="l2", name="hidden")(hidden)
    hidden = hidden if layer is None else layer(hidden)
    model = kind(inputs, mr.layers.Dense(1, name="out")(hidden))
    model.compile(**{"optimizer": mr.optim.Adam(0.05, name="adam"), **options})
    return model


def plain(**options: Any) -> mr.Model:
    """Return a model whose step is that of `fit`."""
    return made(mr.Model, loss="mse", metrics=["mse"], weighted_metrics=["mse"], **options)


def own(**methods: Any) -> mr.Model:
    """Return a model with other parts of its step."""
    return made(type("Drawn", (Own,), methods))


class Adversaries(mr.Model):
    """Two models with an optimizer each; the second has no weights before its first step."""

    def __init__(self, clip: bool) -> None:
        super().__init__()
        self.first = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1, name="critic")])
        self.second = mr.Sequential([mr.layers.Dense(3, name="maker")])
        self.one, self.other, self.clip = mr.optim.SGD(0.1), mr.optim.Adam(0.1), clip
        self.compile()

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the one, then the other."""
        with mr.GradientTape() as tape:
            first = mr.reduce_mean(self.first(self.second(data))) - mr.reduce_mean(self.first(data))
        weights = self.first.trainable_weights
        gradients = tape.gradient(first, weights)
        if self.clip:
            gradients = [mr.clip_by_norm(each, 0.01) for each in gradients]
        self.one.apply(gradients, weights)
        with mr.GradientTape() as tape:
            second = -mr.reduce_mean(self.first(self.second(data)))
        weights = self.second.trainable_weights
        self.other.apply(tape.gradient(second, weights), weights)
        return {"first": first, "second": second}


class Joined(mr.Model):
    """Tells real examples from made ones in one call, in another order on each number of replicas.

    So does the step of Keras' guide.
    """

    def __init__(self) -> None:
        super().__init__()
        self.judge = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1, name="judge")])
        self.compile("adam")

    def train_step(self, data: Any) -> dict[str, Any]:
        """Update the judge."""
        count = mr.shape(data)[0]
        both = mr.concat([data * 2.0, mr.reverse(data, [0])], axis=0)
        kinds = mr.concat([mr.ones((count, 1)), mr.zeros((count, 1))], axis=0)
        with mr.GradientTape() as tape:
            loss = mr.reduce_mean((self.judge(both) - kinds) ** 2)
            loss = loss + mr.reduce_mean(self.judge(mr.reverse(data, [0])) ** 2)
        weights = self.judge.trainable_weights
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


class Built(mr.Model):
    """A subclass whose layers get their weights when it is first called."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = mr.layers.Dense(5, "relu"), mr.layers.Dense(1)
        self.compile("sgd", "mse")

    def call(self, inputs: Any) -> Any:
        """Return the outputs."""
        return self.outer(self.inner(inputs))


RIGHT: dict[str, Callable[[], mr.Model]] = {
    "fit's": plain,
    "own": made,
    "metrics of compile": lambda: made(
        loss="mse",
        metrics=["mse"],
        kind=type(
            "Full",
            (mr.Model,),
            {"train_step": lambda self, data: mr.Model.train_step(self, data)},
        ),
    ),
    "clipped by the optimizer": lambda: made(optimizer=mr.optim.SGD(0.1, global_clipnorm=0.1)),
    "a mean as state": lambda: made(layer=Centred("mean")),
    "a mean as state in fit's": lambda: plain(layer=Centred("mean")),
    "a penalty on outputs": lambda: plain(layer=mr.layers.ActivityRegularization(l2=0.1)),
    "batches normalized": lambda: made(layer=mr.layers.BatchNormalization()),
    "two optimizers": lambda: Adversaries(clip=False),
    "other orders": Joined,
    "not built": Built,
    "a recorded step": lambda: own(train_step=mr.function(Own.train_step)),
}


# On two replicas; the others are on three.
QUICK = ("fit's", "own", "a mean as state", "two optimizers", "other orders", "a recorded step")


@pytest.mark.behaviour("compare-replicas")
@pytest.mark.parametrize(
    ("make", "replicas"),
    [
        pytest.param(*(make, 2), id=name)
        if name in QUICK
        else pytest.param(*(make, 3), id=name, marks=pytest.mark.slow)
        for name, make in RIGHT.items()
    ],
)
def test_right_steps_pass(make: Callable[[], mr.Model], replicas: int) -> None:
    model = make()
    y = None if isinstance(model, Adversaries | Joined) else Y
    weights = W if type(model) is mr.Model else None
    found = compare(model, X, y, weights, replicas=replicas)
    # Eight examples are as many on either of two replicas, so that the last one is left out.
    assert found.shards == {2: (4, 3), 3: (3, 3, 2)}[replicas]
    assert len(found.compared) > 8
    assert found.largest in found.compared
    assert found.difference < 1e-4
    sizes = {2: "4 and 3", 3: "3, 3 and 2"}[replicas]
    assert str(found) == (
        f"One device and {replicas} replicas, with shards of {sizes} examples, take the same step: "
        f"{len(found.compared)} values agree. The largest difference is {found.difference:.1e} of "
        f"the size of {found.largest}."
    )


PAIRS = {"loss_of": lambda self, y, p: mr.reduce_mean(mr.matmul(p, p, transpose_b=True) ** 2)}
SUM = {"loss_of": lambda self, y, p: mr.reduce_sum((p - y) ** 2)}
CLIP = {"applied": lambda self, gradients: [mr.clip_by_norm(each, 0.1) for each in gradients]}
LARGEST = {"logs": lambda self, x, loss: {"loss": loss, "n": mr.reduce_max(x)}}


def _counted(self: Own, x: Any, loss: Any) -> dict[str, Any]:
    self.steps.update_state(x)
    return {"loss": loss}


WRONG: dict[str, tuple[Callable[[], mr.Model], str]] = {
    "sum": (lambda: own(**SUM), "first difference is 'tracked' in the logs: "),
    "pairs": (lambda: own(**PAIRS), "first difference is the loss that is differentiated: "),
    "clipping": (lambda: own(**CLIP), "first difference is the gradient of 'hidden/kernel': at ["),
    "largest": (lambda: own(**LARGEST), "first difference is 'n' in the logs: "),
    "metric": (
        lambda: own(logs=_counted),
        "difference is the metric's variable 'steps/count': 1 on one device, 2 on 2 replicas. ",
    ),
    "batch": (
        lambda: made(layer=Centred("batch")),
        "first difference is the output of the layer 'centred': at [",
    ),
    "shards normalized": (
        lambda: made(layer=mr.layers.BatchNormalization(synchronized=False, name="apart")),
        "first difference is the output of the layer 'apart': at [",
    ),
    "variance": (
        lambda: made(layer=Centred("variance")),
        "first difference is the state 'centred/state': at [",
    ),
    "the first optimizer of two": (
        lambda: Adversaries(clip=True),
        "first difference is the gradient of 'critic/kernel': at [",
    ),
}


@pytest.mark.behaviour("compare-replicas")
@cases(("make", "text"), WRONG.values(), ids=WRONG)
def test_wrong_steps_are_found_by_name(make: Callable[[], mr.Model], text: str) -> None:
    model = make()
    y = None if isinstance(model, Adversaries) else Y
    with pytest.raises(AssertionError) as caught:
        compare(model, X, y)
    said = str(caught.value)
    assert text in said
    assert said.startswith("One device and 2 replicas, with shards of 4 and 3 examples, take")


def test_what_is_there_on_one_side_only() -> None:
    def logs(self: Own, x: Any, loss: Any) -> dict[str, Any]:
        context: Any = mr.distribute.get_replica_context()
        return {"loss": loss, **({"alone": loss} if context.num_replicas_in_sync == 1 else {})}

    with pytest.raises(
        AssertionError, match="first difference is 'alone' in the logs: it is only on"
    ):
        compare(own(logs=logs), X, Y)


def scopes() -> Iterator[Any]:
    """Yield what a model may be made in."""
    yield nullcontext()
    yield mr.MirroredStrategy().scope()
    yield mr.distribute.OneDeviceStrategy("GPU:1").scope()


@pytest.mark.behaviour("compare-replicas")
def test_under_any_strategy_nothing_changes(caplog: pytest.LogCaptureFixture) -> None:
    mr.config.experimental.set_simulated_gpus(3)
    found = []
    for scope in scopes():
        mr.keras.utils.clear_session()  # Optimizers have the same names.
        with scope:
            model = made()
            model.fit(X, Y, verbose=0)
            variables = [*model.variables, *model.optimizer.variables, *model.tracker.variables]
            before = [each.numpy() for each in variables]
            assert float(model.tracker.result()) > 0
            dropout, state = model.get_layer("dropped"), global_state()
            drawn = dropout.seed_generator.state
            caplog.clear()
            found.append(compare(model, X, Y))  # A strategy's scope is no hindrance.
            assert caplog.messages == []
            for each, value in zip(variables, before, strict=True):
                np.testing.assert_array_equal(each.numpy(), value)
            assert global_state() == state
            assert dropout.seed_generator.state == drawn
            model.fit(X, Y, verbose=0)
    assert len({each.compared for each in found}) == 1


@pytest.mark.slow
def test_a_model_on_a_card(emulated_cuda: Callable[..., Any]) -> None:
    """Both steps are on the host, and the card's values stay."""
    emulated_cuda()
    with mr.MirroredStrategy(make_devices((2,))).scope():
        model = made()
    model.fit(X, Y, verbose=0)
    before = model.get_weights()
    assert compare(model, X, Y).difference < 1e-5
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    model.fit(X, Y, verbose=0)


def test_the_page_for_tests_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "testing.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page.split("## A step of your own")[1], re.DOTALL)
    exec(code, {"__name__": "__main__"})
    assert "first difference is the loss that is differentiated: " in capsys.readouterr().out


def test_few_examples() -> None:
    assert compare(made(), X[:2], Y[:2], replicas=4).shards == (1, 1, 0, 0)
    with pytest.raises(ValueError, match=r"needs two examples or more.* Received: 1 example\."):
        compare(made(), X[:1], Y[:1])


def test_what_cannot_be_compared() -> None:
    model = made()
    with pytest.raises(TypeError, match=r"`compare_replicas` takes a model\. Received: 'model'"):
        compare("model", X)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="You must call `compile"):
        compare(mr.Sequential([mr.layers.Dense(1)]), X, Y)
    with pytest.raises(ValueError, match="`replicas` must be an integer of 2 or more"):
        compare(model, X, Y, replicas=1)
    with pytest.raises(ValueError, match="`rtol` must be a finite number of 0 or more"):
        compare(model, X, Y, rtol=-1.0)
    dataset = mr.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    with pytest.raises(
        TypeError, match=r"takes one batch\. .* a Dataset\. .*next\(iter\(dataset\)\)"
    ):
        compare(model, dataset)
    compare(model, *next(iter(dataset)))
    with pytest.raises(NonFiniteLossError, match="not finite in the step that is compared"):
        compare(model, X * np.nan, Y)
    model.lock = threading.Lock()
    with pytest.raises(TypeError, match=r"model 'own.*', which cannot be copied: .*lock"):
        compare(model, X, Y)
    with pytest.raises(RuntimeError, match="`compare_replicas` is a Python loop"):
        mr.function(lambda: compare(made(), X, Y))()


def test_what_is_reached_around_the_model_is_not_written() -> None:
    tracker = mr.metrics.Mean(name="apart")

    def logs(self: Own, x: Any, loss: Any) -> dict[str, Any]:
        tracker.update_state(loss)
        return {"loss": loss}

    with pytest.raises(RuntimeError, match="a new value for the variable 'apart/total:0', which"):
        compare(own(logs=logs), X, Y)
    assert float(tracker.result()) == 0.0
    tracker.update_state(2.0)  # Where nothing is compared it is written as ever.
    assert float(tracker.result()) == 2.0

    model = made()
    step, before = model.train_step, model.get_weights()
    model.train_step = lambda data: step(data)  # type: ignore[method-assign]
    with pytest.raises(ValueError, match="was not created in the distribution strategy") as caught:
        compare(model, X, Y)
    assert any("with a copy of the model" in note for note in caught.value.__notes__)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float64"])
def test_other_dtypes(policy: str) -> None:
    pytest.importorskip("ml_dtypes")
    mr.keras.mixed_precision.set_global_policy(policy)
    try:
        assert "the weight 'hidden/kernel'" in compare(plain(), X, Y).compared
        with pytest.raises(
            AssertionError, match="first difference is the output of the layer 'centred'"
        ):
            compare(plain(layer=Centred("batch")), X, Y)
    finally:
        mr.keras.mixed_precision.set_global_policy("float32")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_rounding_of_any_model_is_no_difference(seed: int) -> None:
    """Many examples, dropout, several layers, steep steps; and a mistake shows all the same."""
    rng = np.random.default_rng(seed)
    examples, features, classes = rng.integers([20, 1, 2], [300, 30, 6]).tolist()
    x = rng.normal(size=(examples, features)) * 10.0 ** rng.uniform(-2, 2)
    y = rng.integers(0, classes, size=examples)
    rate = 10.0 ** rng.uniform(-4, -1)
    optimizer = [mr.optim.SGD(rate, momentum=0.9), mr.optim.Adam(rate, clipnorm=0.1)][seed % 2]

    def build(kind: type[mr.Model]) -> mr.Model:
        hidden = inputs = mr.layers.Input((features,))
        for _ in range(seed % 3 + 1):
            units = int(rng.integers(8, 64))
            hidden = mr.layers.Dense(units, ["relu", "tanh"][seed % 2])(hidden)
            hidden = mr.layers.Dropout(0.3)(hidden)
        model = kind(inputs, mr.layers.Dense(classes, "softmax")(hidden))
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    class Scaled(mr.Model):
        def compute_loss(self, x: Any = None, *args: Any, **options: Any) -> Any:
            """Return a loss that is that of a batch times the examples of a shard, squared."""
            return super().compute_loss(x, *args, **options) * float(x.shape[0]) ** 2

    replicas = int(rng.integers(2, 6))
    compare(build(mr.Model), x, y, replicas=replicas)
    optimizer = mr.optim.SGD(rate)
    with pytest.raises(AssertionError, match="first difference is the loss that is differentiated"):
        compare(build(Scaled), x, y, replicas=replicas)


# ------------------------------------------------------------------------------ tolerances


def differences(
    one: dict[Event, Value], many: dict[Event, Value], **options: Any
) -> dict[str, bool]:
    found = Tolerances(plain(), options.get("rtol"), options.get("atol")).differences(one, many)
    return {each.event.name: each.agrees for each in found}


def test_rounding_is_no_difference() -> None:
    ones = np.ones(100, "float32")
    rounded = ones * (1.0 + 1e-5 * RNG.normal(size=100)).astype("float32")
    for value, agrees in ((rounded, True), (ones * 1.001, False), (ones[:50], False)):
        event = Event("output", "a")
        assert differences({event: Value(ones)}, {event: Value(value)}) == {"a": agrees}
    event = Event("log", "a")
    small = {event: Value(np.asarray(1e-9))}, {event: Value(np.asarray(2e-9))}
    assert differences(*small) == {"a": True}
    assert differences(*small, atol=0.0) == {"a": False}
    assert differences(*small, atol=0.0, rtol=1.0) == {"a": True}


def test_variables_are_compared_by_what_changed() -> None:
    event, before = Event("weight", "a"), np.ones(100, "float32")
    one = {event: Value(before - np.float32(1e-5), before)}
    assert differences(one, {event: Value(before - np.float32(2e-5))}) == {"a": False}
    assert differences(one, {event: Value(before - np.float32(1.01e-5))}) == {"a": True}
    # Adam may step the other way where a gradient is rounding: in few of many elements.
    zeros, step = np.zeros(100_000, "float32"), np.full(100_000, 0.01, "float32")
    for few, agrees in ((3, True), (3000, False)):
        turned = np.where(np.arange(100_000) < few, -step, step)
        found = differences({event: Value(step, zeros, "a")}, {event: Value(turned)})
        assert found == {"a": agrees}
    count = Event("state", "n")
    whole = {count: Value(np.asarray(3), np.asarray(2))}
    assert differences(whole, {count: Value(np.asarray(4))}) == {"n": False}


def test_a_gradient_that_is_rounding_alone_says_nothing() -> None:
    """As that of a bias before a normalization is, which Adam makes a whole step of."""
    gradients = {"w": np.ones(9, "float32"), "b": np.full(9, 1e-7, "float32")}
    steps = []
    for sign in (1.0, -1.0):
        values = {Event("gradient", "w"): Value(gradients["w"])}
        values[Event("gradient", "b")] = Value(gradients["b"] * np.float32(sign))
        values[Event("weight", "b")] = Value(np.full(9, 0.1 * sign), np.zeros(9), "b")
        values[Event("weight", "w")] = Value(np.full(9, 0.1 * sign), np.zeros(9), "w")
        steps.append(values)
    found = Tolerances(plain(), None, None).differences(*steps)
    assert [(each.event.kind, each.event.name, each.agrees) for each in found] == [
        ("gradient", "w", True),
        ("gradient", "b", True),
        ("weight", "w", False),
    ]


def test_nan_is_like_nan_alone() -> None:
    event = Event("gradient", "a")
    bad, good = {event: Value(np.array([np.nan, 1.0]))}, {event: Value(np.ones(2))}
    assert differences(bad, bad) == {"a": True}
    assert differences(bad, good) == differences(good, bad) == {"a": False}
