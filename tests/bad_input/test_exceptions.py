"""What users' own code raises in callbacks, losses, metrics and layers reaches the caller.

The model is as after its last whole step, and trains on from there.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.ops.hooks import shapes_alone


class Broken(Exception):
    """What users' code raises here."""


# The hook, and how many steps are over when it is called first.
HOOKS = {
    "on_train_begin": 0,
    "on_epoch_begin": 0,
    "on_train_batch_begin": 0,
    "on_train_batch_end": 1,
    "on_test_begin": 2,
    "on_test_batch_begin": 2,
    "on_test_batch_end": 2,
    "on_test_end": 2,
    "on_epoch_end": 2,
    "on_train_end": 2,
}


@pytest.fixture(autouse=True)
def clean_state(shared: Any, clean_names: None) -> None:
    """Let devices and models stay from row to row."""


@cases(("hook", "steps"), HOOKS.items(), clean=False)
def test_an_exception_in_a_callback(
    hook: str,
    steps: int,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    class Breaks(mr.callbacks.Callback):
        pass

    def breaks(self: Breaks, *args: Any) -> None:
        raise Broken(hook)

    setattr(Breaks, hook, breaks)
    options: dict[str, Any] = {"callbacks": [Breaks()], "validation_data": data}
    check_refused(
        make_model(strategy), lambda model: train(model, **options), Broken, hook, steps=steps
    )


@cases("hook", ["begin", "batch_begin", "batch_end", "end"], clean=False)
@cases("method", ["evaluate", "predict"], clean=False)
def test_an_exception_in_a_callback_of(
    method: str,
    hook: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    def breaks(*args: Any) -> None:
        raise Broken(hook)

    name = f"on_{'test' if method == 'evaluate' else method}_{hook}"
    callback = type("Breaks", (mr.callbacks.Callback,), {name: breaks})()
    given = data if method == "evaluate" else data[:1]
    check_refused(
        make_model(strategy),
        lambda model: getattr(model, method)(*given, verbose=0, callbacks=[callback]),
        Broken,
        hook,
    )


CALLBACKS: dict[str, tuple[Any, str]] = {
    "a class": ([mr.callbacks.Callback], "Did you forget the parentheses?"),
    "a function": (print, "must hold instances of `mr.callbacks.Callback`"),
}


@cases(("callbacks", "message"), CALLBACKS.values(), ids=CALLBACKS, clean=False)
def test_callbacks_that_are_none(
    callbacks: Any,
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    check_refused(
        make_model(strategy), lambda model: train(model, callbacks=callbacks), TypeError, message
    )


class Switch:
    """Code of a user's that fails while it is on, in the last replica alone."""

    def __init__(self) -> None:
        self.on = False

    def check(self) -> None:
        context = mr.distribute.get_replica_context()
        last = context is not None and (
            context.replica_id_in_sync_group == context.num_replicas_in_sync - 1
        )
        if self.on and last:
            raise Broken("of the user's")


@pytest.mark.parametrize(
    ("what", "eager"),
    [
        *(("loss", False), ("metric", False), ("layer", True), ("step", False)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("loss", True), ("metric", True), ("layer", False), ("step", True))
        ),
    ],
)
def test_an_exception_in_a_users_code(
    what: str,
    eager: bool,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    """It reaches the caller with the replica and the device named.

    A batch of another size makes a model that records its steps run Python again.
    """
    switch = Switch()

    def loss(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        switch.check()
        return mr.square(y_true - y_pred)

    class Layer(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            switch.check()
            return inputs

    class Stepped(mr.Sequential):
        def train_step(self, data: Any) -> Any:
            logs = super().train_step(data)
            switch.check()  # The optimizer has had its gradients.
            return logs

    def make(strategy: mr.MirroredStrategy) -> mr.Model:
        mr.random.set_seed(2)
        with strategy.scope():
            kind = Stepped if what == "step" else mr.Sequential
            model = kind([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
            if what == "layer":
                model.add(Layer())
            model.compile(
                mr.optim.SGD(0.1, momentum=0.9),
                loss if what == "loss" else "mse",
                metrics=[loss] if what == "metric" else None,
                run_eagerly=eager,
            )
        train(model)
        return model

    def act(model: mr.Model) -> None:
        switch.on = True
        try:
            train(model, batch_size=4)
        finally:
            switch.on = False

    model = make(strategy)
    error = check_refused(model, act, Broken, "of the user's", make=make)
    notes = "".join(getattr(error, "__notes__", []))
    last = strategy.num_replicas_in_sync - 1
    if last and what != "metric":  # A metric is called once, with the whole batch.
        assert f"Raised in replica {last} on {strategy.devices[last].full_name}." in notes


class Looks(mr.layers.Layer):
    """Does with its inputs, while a step is recorded, what needs their values."""

    def __init__(self, look: Callable[[mr.Tensor], Any]) -> None:
        super().__init__()
        self.look = look

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        if mr.distribute.get_replica_context() is not None:
            self.look(inputs)
        return inputs


LOOKS: dict[str, Callable[[mr.Tensor], Any]] = {
    "numpy": lambda x: x.numpy(),
    "float": lambda x: float(mr.reduce_sum(x)),
    "int": lambda x: int(mr.reduce_sum(mr.cast(x, "int32"))),
    "if": lambda x: 1 if mr.reduce_sum(x) > 0 else 2,
    "and": lambda x: mr.reduce_sum(x) > 0 and x,
    "asarray": np.asarray,
    "a function of NumPy's": np.exp,
    "an index": lambda x: [1, 2, 3][mr.argmax(x[0])],
    "a slice": lambda x: x[: mr.argmax(x[0])],
    "a number in a string": lambda x: f"{mr.reduce_sum(x):.3f}",
    "numpy_function": lambda x: mr.numpy_function(np.exp, [x], mr.float32) + x,
}


@cases("look", LOOKS.values(), ids=LOOKS, clean=False)
def test_a_recorded_step_has_no_values(
    look: Callable[[mr.Tensor], Any],
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    with strategy.scope():
        layer = Looks(look)
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(3), layer])
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    before = state(model)
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError) as caught:
        train(model)
    text, notes = str(caught.value), "".join(caught.value.__notes__)
    assert "Received: " in text
    assert "recorded" in text
    assert "outside" in text
    assert f"Raised in layer {layer!r}, called on shape " in notes
    assert f"Raised in replica 0 on {strategy.devices[0].full_name}." in notes
    assert state(model) == before
    assert threading.enumerate() == [threading.main_thread()]
    layer.look = str  # What needs no values is fine, and nothing of the failure is left.
    train(model)
    assert int(model.optimizer.iterations) == 2


def test_an_exception_while_a_later_step_is_recorded(
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    """The last batch is shorter, so its step is recorded when another has been taken."""
    sizes: list[int] = []

    def raises(x: mr.Tensor) -> None:
        if not shapes_alone():
            sizes.append(x.shape[0])
        if sizes and sizes[0] != sizes[-1]:
            raise Broken

    def make(look: Callable[[mr.Tensor], Any]) -> mr.Model:
        mr.random.set_seed(2)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(3), Looks(look)])
            model.compile(mr.optim.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
        return model

    model, reference = make(raises), make(str)
    with pytest.raises(Broken):
        train(model, batch_size=9)
    train(reference, batch_size=9, steps_per_epoch=1)
    assert int(model.optimizer.iterations) == 1
    assert state(model) == state(reference)
    model.layers[-1].look = str
    for each in (model, reference):
        train(each)
    assert state(model) == state(reference)


def test_a_tensor_that_is_kept_from_a_recorded_step(
    strategy: mr.MirroredStrategy, train: Callable[..., mr.callbacks.History]
) -> None:
    """Whatever is done with it afterwards, eagerly or in another recording, says so."""
    kept: list[mr.Tensor] = []
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(3), Looks(kept.append)])
        model.compile("sgd", "sparse_categorical_crossentropy")
    train(model)
    uses: list[Callable[[], Any]] = [
        kept[0].numpy,
        lambda: kept[0] + 1.0,
        lambda: mr.Variable(np.zeros(kept[0].shape, np.float32)).assign(kept[0]),
        lambda: float(mr.reduce_sum(kept[0])),
    ]
    for use in uses:
        with pytest.raises(mr.errors.OperatorNotAllowedInGraphError) as caught:
            use()
        assert "kept from a call that was recorded" in str(caught.value)
        assert "Return it from the function instead of storing it." in str(caught.value)
    first = kept[0]
    model.layers[-1].look = lambda x: x + mr.reduce_sum(first)
    with pytest.raises(mr.errors.OperatorNotAllowedInGraphError, match="kept from another call"):
        train(model, batch_size=4)


LOSSES: dict[str, tuple[Callable[..., Any], str]] = {
    "a value a feature": (
        lambda y_true, y_pred: mr.reduce_mean(mr.square(y_true - y_pred), axis=0),
        "must return one value per example",
    ),
    "None": (lambda y_true, y_pred: None, "None"),
}


@cases(("loss", "message"), LOSSES.values(), ids=LOSSES, clean=False)
def test_a_loss_of_another_shape(
    loss: Callable[..., Any],
    message: str,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
        model.compile("sgd", loss)
    before = state(model)
    with pytest.raises((ValueError, TypeError), match=message):
        train(model)
    assert state(model) == before
