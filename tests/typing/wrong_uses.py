"""Wrong uses of the library: mypy refuses each line, and an `ignore` that nothing needs.

It is read by type checkers alone, and never run.
"""

import mirrored as mr
from mirrored.losses import CTC  # type: ignore[attr-defined]  # noqa: F401


@mr.function
def scaled(x: mr.Tensor, factor: float) -> mr.Tensor:
    return x * factor


@mr.function(input_signature=[mr.TensorSpec((None,))])
def total(x: mr.Tensor) -> mr.Tensor:
    return mr.reduce_sum(x)


class Owner:
    @mr.function
    def step(self, x: mr.Tensor) -> mr.Tensor:
        return x


def wrong(strategy: mr.distribute.Strategy, model: mr.Model, tape: mr.GradientTape) -> None:
    """Use everything as it is not."""
    tensor = mr.constant(1.0)
    weight = mr.Variable(1.0)
    scaled(tensor)  # type: ignore[call-arg]
    scaled(tensor, "two")  # type: ignore[arg-type]
    scaled(tensor, times=2.0)  # type: ignore[call-arg]
    total(tensor, tensor)  # type: ignore[call-arg]
    Owner().step(3)  # type: ignore[arg-type]
    scaled(tensor, 2.0).eval()  # type: ignore[attr-defined]
    tape.gradient(tensor, weight) * 2.0  # type: ignore[operator]
    tape.gradient(tensor, [weight])[0].numpy()  # type: ignore[union-attr]
    strategy.run(scaled, args=3)  # type: ignore[call-overload]
    float(strategy.run(scaled, args=(tensor, 2.0)))  # type: ignore[arg-type]
    strategy.reduce("sum", tensor, axis=None).values()  # type: ignore[attr-defined]
    model.evaluate(return_dict=True)[0]  # type: ignore[index]
    model.optimizer.nope()  # type: ignore[union-attr]
    model.save()  # type: ignore[call-arg]
    mr.layers.Dense(3, actvation="relu")  # type: ignore[call-arg]
    mr.optim.SGD(lr=0.1)  # type: ignore[call-arg]
    mr.data.Dataset.range(3).snapshot("x")  # type: ignore[attr-defined]
    tensor.shape.as_proto()  # type: ignore[attr-defined]
    mr.eigvals(tensor)  # type: ignore[attr-defined]
    mr.add({"x": 1.0}, tensor)  # type: ignore[arg-type]
    mr.add("one", tensor)  # type: ignore[arg-type]
    mr.reduce_sum(None)  # type: ignore[arg-type]
    mr.stack(["one", "two"])  # type: ignore[list-item]
    mr.zeros("two")  # type: ignore[arg-type]
    mr.zeros((2, 1.5))  # type: ignore[arg-type]
    mr.reshape(tensor, {2, 3})  # type: ignore[arg-type]
    mr.cast(tensor, 32)  # type: ignore[arg-type]
    mr.reduce_max(tensor, axis="rows")  # type: ignore[arg-type]
    mr.keras.ops.softmax(object())  # type: ignore[arg-type]
    mr.experimental.numpy.sum({1.0, 2.0})  # type: ignore[arg-type]
    for pair in mr.data.Dataset.from_tensor_slices(([1], [2])):
        pair.numpy()  # type: ignore[attr-defined]
