"""Restoration that goes on: variables get their values when they are made, as in TensorFlow."""

import gc
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.errors import WeightsFileError

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
Y = X[:, :1]


def module(**values: Any) -> mr.Module:
    made = mr.Module()
    for name, value in values.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def strategy(simulate: Callable[..., Any]) -> mr.MirroredStrategy:
    """Return a strategy of two replicas, made before other tensors."""
    simulate(2)
    return mr.MirroredStrategy()


@pytest.fixture
def modules(tmp_path: Path) -> str:
    """Return the path of a checkpoint of a module with variables at all places."""
    inner = module(x=mr.Variable(7.0))
    lists = [mr.Variable(1.0), mr.Variable(2.0)]
    whole = module(a=mr.Variable(10.0), lists=lists, by={"k": mr.Variable(5.0)}, inner=inner)
    return mr.train.Checkpoint(m=whole).save(tmp_path / "c")


@pytest.mark.behaviour("late-variables")
def test_attributes_that_a_module_gets_later(modules: str) -> None:
    late = mr.Module()
    late.lists = []
    status = mr.train.Checkpoint(m=late).restore(modules)
    assert status.assert_existing_objects_matched() is status.assert_nontrivial_match()
    with pytest.raises(AssertionError, match=r"Unresolved object .*m/a, m/by/k, m/inner/x"):
        status.assert_consumed()
    late.a = mr.Variable(0.0)
    late.lists.append(mr.Variable(0.0))
    late.lists += [mr.Variable(0.0)]
    late.inner = mr.Module()
    late.inner.x = mr.Variable(0.0)
    assert float(late.a) == 10.0
    assert [float(each) for each in late.lists] == [1.0, 2.0]
    assert float(late.inner.x) == 7.0
    late.a.assign(3.0)
    late.by = {}
    late.by["k"] = mr.Variable(0.0)
    assert (float(late.by["k"]), float(late.a)) == (5.0, 3.0)
    status.assert_consumed()


def test_a_variable_that_takes_the_place_of_a_restored_one(modules: str) -> None:
    late = module(a=mr.Variable(0.0))
    status = mr.train.Checkpoint(m=late).restore(modules).expect_partial()
    assert float(late.a) == 10.0
    late.a = mr.Variable(4.0)
    assert float(late.a) == 4.0
    with pytest.raises(AssertionError, match=r"Found 1 Python objects .* no values for m/a\."):
        status.assert_existing_objects_matched()


def test_values_of_a_checkpoint_that_it_gets_later(modules: str) -> None:
    checkpoint = mr.train.Checkpoint()
    checkpoint.restore(modules).expect_partial()
    checkpoint.m = module(a=mr.Variable(0.0))
    assert float(checkpoint.m.a) == 10.0


@pytest.mark.behaviour("late-variables")
def test_the_file_is_the_one_that_was_restored(modules: str) -> None:
    late = mr.Module()
    mr.train.Checkpoint(m=late).restore(modules).expect_partial()
    Path(modules).unlink()
    mr.train.Checkpoint(m=module(a=mr.Variable(-1.0))).write(modules)
    late.a = mr.Variable(0.0)
    assert float(late.a) == 10.0


def test_a_variable_of_another_shape(modules: str) -> None:
    late = mr.Module()
    mr.train.Checkpoint(m=late).restore(modules)
    with pytest.raises(WeightsFileError, match=r"'m/a' has shape \(\), the program's has \(2,\)"):
        late.a = mr.Variable([1.0, 2.0])
    late.lists = [mr.Variable(9.0)]  # Nothing is restored any more.
    assert late.a.numpy().tolist() == [1.0, 2.0]
    assert float(late.lists[0]) == 9.0


def test_nothing_that_fits(tmp_path: Path) -> None:
    held = mr.train.Checkpoint(b=mr.Variable(2.0))
    path = mr.train.Checkpoint(module(a=mr.Variable(1.0))).write(tmp_path / "c")
    status = held.restore(path).expect_partial()
    assert status.assert_nontrivial_match() is status  # The counter of saves.
    del held.save_counter
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        held.restore(path).expect_partial().assert_nontrivial_match()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        held.restore(None).assert_nontrivial_match()


def test_what_is_left_over_is_told_at_the_end(
    modules: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mirrored")
    late = mr.Module()
    mr.train.Checkpoint(m=late).restore(modules)
    late.a = mr.Variable(0.0)
    gc.collect()
    assert caplog.messages == []
    del late
    gc.collect()
    assert len(caplog.messages) == 1
    assert "values that were not restored: m/by/k, m/inner/x, m/lists/0" in caplog.messages[0]


def test_variables_that_replicas_and_recorded_functions_make(
    strategy: mr.MirroredStrategy, modules: str
) -> None:
    late, recorded = mr.Module(), mr.Module()
    mr.train.Checkpoint(m=late).restore(modules).expect_partial()
    mr.train.Checkpoint(m=recorded).restore(modules).expect_partial()

    def made(owner: mr.Module) -> Any:
        if not hasattr(owner, "a"):
            owner.a = mr.Variable(0.0)
        return owner.a.read_value()

    with strategy.scope():
        values = strategy.experimental_local_results(strategy.run(made, (late,)))
    assert [float(each) for each in values] == [10.0, 10.0]
    call = mr.function(lambda: made(recorded) * 2.0)
    assert float(call()) == 20.0
    recorded.a.assign(3.0)
    assert float(call()) == 6.0


class Subclassed(mr.Model):
    def __init__(self) -> None:
        super().__init__()
        self.last = None
        self.first = mr.layers.Dense(2, "tanh")
        self.dropped = mr.layers.Dropout(0.25)
        self.last = mr.layers.Dense(1)

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self.last(self.dropped(self.first(inputs), training=training))


class Composite(mr.layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first = mr.layers.Dense(2)
        self.last = mr.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.last(self.first(inputs))


MODELS: dict[str, Callable[[], Any]] = {
    "sequential": lambda: mr.Sequential(
        [mr.layers.Dense(2, "tanh"), mr.layers.Dropout(0.25), mr.layers.Dense(1)]
    ),
    "subclass": Subclassed,
}


@pytest.mark.behaviour("late-variables")
@pytest.mark.parametrize("make", [*MODELS.values(), Composite])
def test_the_first_call_of_an_unbuilt_model(make: Callable[[], Any], tmp_path: Path) -> None:
    mr.random.set_seed(1)
    saved, late = make(), make()
    outputs = saved(X)
    path = mr.train.Checkpoint(net=saved).save(tmp_path / "c")
    status = mr.train.Checkpoint(net=late).restore(path)
    status.assert_existing_objects_matched()
    np.testing.assert_array_equal(late(X), outputs)
    status.assert_consumed()


@pytest.mark.behaviour("late-variables")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("compiled", ["before", "after", "at the end"])
def test_training_goes_on_with_the_same_bits(
    strategy: mr.MirroredStrategy, make: Callable[[], Any], compiled: str, tmp_path: Path
) -> None:
    """Weights, slots, steps and dropout: whatever is made after the restoration."""
    with strategy.scope():
        saved, late = make(), make()

    def compile_(model: mr.Model) -> None:
        with strategy.scope():
            model.compile(mr.optim.Adam(0.1), "mse")

    compile_(saved)
    saved.fit(X, Y, shuffle=False, verbose=0)
    path = mr.train.Checkpoint(saved).save(tmp_path / "c")
    saved.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    if compiled == "before":
        compile_(late)
    status = mr.train.Checkpoint(late).restore(path)
    if compiled == "after":
        compile_(late)
    if compiled == "at the end":
        late.build((None, 3))
        compile_(late)
    late.fit(X, Y, epochs=2, shuffle=False, verbose=0)
    for one, other in zip(saved.get_weights(), late.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(saved.optimizer.variables, late.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    status.assert_consumed()
