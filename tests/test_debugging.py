"""``mr.debugging`` holds names, and no logic of its own."""

import pytest

import mirrored as mr
from mirrored import debugging, devices


@pytest.mark.parametrize("name", ["get_log_device_placement", "set_log_device_placement"])
def test_names(name: str) -> None:
    assert getattr(debugging, name) is getattr(devices, name)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_loop_that_checks_gradients_writes_nothing(recorded: bool) -> None:
    strategy = mr.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        v, w = mr.Variable([4.0, 0.0]), mr.Variable([1.0, 1.0])
        optimizer = mr.optim.SGD(0.1, momentum=0.9)

    def of_replica() -> None:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(mr.sqrt(v) + w)
        pairs = zip(tape.gradient(loss, [v, w]), [v, w], strict=True)
        optimizer.apply_gradients(
            [(mr.debugging.check_numerics(g, f"the gradient of {x.name}"), x) for g, x in pairs]
        )

    step = mr.function(of_replica) if recorded else of_replica
    with pytest.raises(mr.errors.InvalidArgumentError, match=r"the gradient of .*Inf"):
        strategy.run(step)
    assert (v.numpy().tolist(), w.numpy().tolist()) == ([4.0, 0.0], [1.0, 1.0])
