"""A program as users write it, with types: mypy --strict accepts it, and knows what comes back.

It also runs, in tests/typing/test_user_program.py; wrong_uses.py has what mypy refuses.
"""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import mirrored as mr
from mirrored.losses import SparseCategoricalCrossentropy

BATCH_SIZE = 8


class Scale(mr.layers.Layer):
    """A layer of one's own."""

    factor: mr.Variable

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return inputs * self.factor


class Noisy(mr.layers.Dense):
    """A layer whose call has a further argument."""

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        return super().call(inputs + 1.0 if training else inputs)


class Weighted(mr.layers.Layer):
    """A layer of two inputs."""

    def build(self, x_shape: tuple[int | None, ...], y_shape: tuple[int | None, ...]) -> None:
        self.built = x_shape == y_shape

    def call(self, x: mr.Tensor, y: mr.Tensor, *, mask: Any = None) -> mr.Tensor:
        return x * y

    def compute_output_shape(
        self, x_shape: tuple[int | None, ...], y_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return x_shape


class Classifier(mr.Model):
    """A model with a call of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = Noisy(2)
        self.weighted = Weighted()

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        x = assert_type(self.dense(inputs, training=training), mr.Tensor)
        product: mr.Tensor = self.weighted(x, x)
        return product


class Pair(mr.Model):
    """A model of two inputs."""

    def build(self, x_shape: tuple[int | None, ...], y_shape: tuple[int | None, ...]) -> None:
        self.built = x_shape == y_shape

    def call(
        self, inputs: tuple[mr.Tensor, mr.Tensor], training: bool | None = None, mask: Any = None
    ) -> mr.Tensor:
        return inputs[0] + inputs[1]


class Doubling(mr.Sequential):
    """A sequential model with a call of its own."""

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        outputs: mr.Tensor = super().call(inputs)
        return outputs * 2.0


class Training:
    """A loop of one's own, whose step is recorded."""

    def __init__(self, strategy: mr.distribute.Strategy) -> None:
        self.strategy = strategy
        with strategy.scope() as entered:
            assert_type(entered, mr.distribute.Strategy)
            layers = [mr.layers.Input(shape=(4,)), Scale(), mr.layers.Dense(3, activation="relu")]
            self.model = mr.Sequential([*layers, mr.layers.Dense(2)])
            self.optimizer = mr.optim.SGD(learning_rate=0.1, momentum=0.9)
            self.mean = mr.metrics.Mean()
        self.losses = SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica_step(self, x: mr.Tensor, y: mr.Tensor) -> mr.Tensor:
        with mr.GradientTape() as tape:
            losses = self.losses(y, assert_type(self.model(x, training=True), mr.Tensor))
            loss = mr.nn.compute_average_loss(losses, global_batch_size=BATCH_SIZE)
        variables = self.model.trainable_variables
        gradients = assert_type(tape.gradient(loss, variables), list[mr.Tensor | None])
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        self.mean.update_state(loss)
        return loss

    @mr.function
    def step(self, x: Any, y: Any) -> mr.Tensor:
        parts = self.strategy.run(self.replica_step, args=(x, y))
        assert_type(parts, mr.Tensor | mr.distribute.PerReplica)
        return assert_type(self.strategy.reduce("sum", parts, axis=None), mr.Tensor)


def norms(
    x: mr.types.TensorLike, axis: mr.types.AxisLike = -1, dtype: mr.types.DTypeLike = "float32"
) -> mr.Tensor:
    """Return norms of whatever becomes a tensor."""
    return mr.norm(mr.cast(x, dtype), axis=axis)


def sizes(shape: mr.types.ShapeLike) -> mr.types.Nest[mr.types.TensorLike]:
    return {"zeros": [mr.zeros(shape)], "ones": (mr.ones(shape, dtype=np.float64), 1.0)}


@mr.function(input_signature=[mr.TensorSpec([None], mr.float32)])
def doubled(x: mr.Tensor) -> mr.Tensor:
    return x * 2.0


@mr.function
def three() -> int:
    return 3  # A number becomes a tensor where a function is recorded.


def main(folder: Path) -> float:
    """Train with both loops, and return the last loss."""
    mr.random.set_seed(1)
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    y = np.arange(16) % 2
    assert_type(mr.data.Dataset.range(3), mr.data.Dataset[mr.Tensor])
    assert_type(Classifier()(x, training=True), mr.Tensor)
    assert_type(Doubling([mr.layers.Dense(2)])(x), mr.Tensor)
    numbers = mr.data.Dataset.range(6).shuffle(6).take_while(lambda number: number >= 0)
    assert_type(numbers.flat_map(lambda each: mr.data.Dataset.range(3)), mr.data.Dataset[mr.Tensor])
    assert_type(
        numbers.group_by_window(lambda each: each % 2, lambda key, group: group.batch(2), 2),
        mr.data.Dataset[mr.Tensor],
    )
    assert_type(numbers.padded_batch(6).get_single_element(), mr.Tensor)
    assert_type(
        mr.data.Dataset.sample_from_datasets([numbers, numbers]), mr.data.Dataset[mr.Tensor]
    )
    for image, label in mr.data.Dataset.from_tensor_slices((x, y)).shuffle(16).take(1):
        assert_type((image, label), tuple[mr.Tensor, mr.Tensor])
    assert_type(norms([[3, 4.0], x[0, :2], (mr.Variable(1.0), mr.constant(2.0))]), mr.Tensor)
    assert_type(norms(mr.Variable([[3.0]]), axis=[0, 1], dtype=mr.float64), mr.Tensor)
    assert len(mr.nest.flatten(sizes((2, np.int64(3))))) == len(mr.nest.flatten(sizes(2))) == 3
    training = Training(mr.MirroredStrategy())
    dataset = mr.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE)
    loss = 0.0
    for batch in training.strategy.experimental_distribute_dataset(dataset):
        loss = float(assert_type(training.step(*batch), mr.Tensor))
    model = training.model
    model.compile(training.optimizer, SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=BATCH_SIZE, epochs=2, verbose=0)
    assert_type(history.history["loss"], list[float])
    values = assert_type(model.evaluate(x, y, return_dict=True, verbose=0), dict[str, float])
    assert_type(mr.debugging.compare_replicas(model, x, y).difference, float)
    outputs: np.ndarray[Any, Any] = model.predict(x, verbose=0)  # Or a structure of several.
    assert_type((doubled(mr.ones((2,))), three()), tuple[mr.Tensor, mr.Tensor])
    rate: mr.Variable = training.optimizer.learning_rate  # Of a schedule it is a tensor.
    assert_type(rate.assign(0.05), mr.Variable)
    assert_type(mr.train.latest_checkpoint(folder), str | None)
    assert_type(mr.train.Checkpoint(model=model).save(str(folder / "model")), str)
    return loss + values["loss"] + float(outputs.mean())
