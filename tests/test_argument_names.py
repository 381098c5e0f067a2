"""Arguments that a public call has not: the error names the one that was meant."""

import enum
import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from case_table import cases
from extras import WRAPPERS

import mirrored as mr
from mirrored._arguments import _called, has_options

X = np.ones((4, 3), np.float32)


def model() -> mr.Model:
    """Return a compiled model."""
    made = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


class Scale(mr.layers.Layer):
    """A layer of a user's, which passes on what it does not know."""

    def __init__(self, factor: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return inputs * self.factor


DATASET = mr.data.Dataset.range(3)
STRATEGY = mr.distribute.get_strategy()


@pytest.mark.behaviour("argument-names")
@cases(
    ("function", "args", "given", "whose", "meant"),
    [
        (mr.layers.Dense, (3,), "actvation", "Dense", "activation"),
        (mr.layers.Dense, (), "unit", "Dense", "units"),
        (mr.layers.Dense, (), "output_dim", "Dense", "units"),
        (mr.layers.Dense, (3,), "input_size", "Dense", "input_shape"),
        (mr.layers.Dense, (3,), "trainabel", "Dense", "trainable"),
        (mr.layers.Dropout, (), "p", "Dropout", "rate"),
        (mr.layers.Flatten, (), "nme", "Flatten", "name"),
        (mr.layers.Input, (), "input_shape", "Input", "shape"),
        (Scale, (2.0,), "nme", "Scale", "name"),
        (mr.optim.SGD, (), "lr", "SGD", "learning_rate"),
        (mr.optim.Adam, (), "beta1", "Adam", "beta_1"),
        (mr.optim.Adam, (), "betas", "Adam", "beta_1"),
        (mr.optim.Adam, (), "eps", "Adam", "epsilon"),
        (mr.losses.MeanSquaredError, (), "reductions", "MeanSquaredError", "reduction"),
        (mr.metrics.Mean, (), "nme", "Mean", "name"),
        (mr.initializers.RandomNormal, (), "std", "RandomNormal", "stddev"),
        (mr.Model, (), "input", "Model", "inputs"),
        (mr.Sequential, (), "layer", "Sequential", "layers"),
        (model().fit, (X, X[:, :1]), "epoch", "Model.fit", "epochs"),
        (model().fit, (X, X[:, :1]), "nb_epoch", "Model.fit", "epochs"),
        (model().compile, (), "optimiser", "Model.compile", "optimizer"),
        (model().predict, (X,), "batchsize", "Model.predict", "batch_size"),
        (mr.reduce_sum, (X,), "keep_dims", "reduce_sum", "keepdims"),
        (mr.reduce_mean, (X,), "reduction_indices", "reduce_mean", "axis"),
        (mr.nn.softmax, (X,), "dim", "softmax", "axis"),
        (mr.concat, ([X],), "concat_dim", "concat", "axis"),
        (mr.argmax, (X,), "dimension", "argmax", "axis"),
        (mr.matmul, (X, X), "transpose_A", "matmul", "transpose_a"),
        (mr.constant, (1,), "dtyp", "constant", "dtype"),
        (mr.Variable, (1.0,), "trainabel", "Variable", "trainable"),
        (mr.function, (), "signature", "function", "input_signature"),
        (mr.GradientTape, (), "persist", "GradientTape", "persistent"),
        (mr.MirroredStrategy, (), "device", "MirroredStrategy", "devices"),
        (STRATEGY.run, (print,), "arg", "Strategy.run", "args"),
        (DATASET.shuffle, (), "buffer", "Dataset.shuffle", "buffer_size"),
        (DATASET.map, (print,), "num_threads", "Dataset.map", "num_parallel_calls"),
        (
            mr.config.LogicalDeviceConfiguration,
            (),
            "memory",
            "LogicalDeviceConfiguration",
            "memory_limit",
        ),
    ],
)
def test_a_misspelt_or_old_argument_names_the_right_one(
    function: Any, args: tuple[Any, ...], given: str, whose: str, meant: str
) -> None:
    with pytest.raises(TypeError) as caught:
        function(*args, **{given: 1})
    said = f"{whose}() got an unexpected keyword argument {given!r}. Did you mean {meant!r}?"
    assert str(caught.value) == said
    assert caught.value.__suppress_context__


def test_an_argument_that_is_like_none_leads_to_all_there_are() -> None:
    with pytest.raises(TypeError) as caught:
        mr.layers.Dropout(0.5, no_such=None)  # type: ignore[call-arg]
    assert str(caught.value) == (
        "Dropout() got an unexpected keyword argument 'no_such'. Its arguments are: rate, "
        "seed, noise_shape, activity_regularizer, name, trainable, dtype, autocast, "
        "input_shape, input_dim."
    )


@cases(
    ("call", "text"),
    [
        (lambda: mr.layers.Dense(), "missing 1 required positional argument: 'units'"),  # type: ignore[call-arg]
        (lambda: mr.layers.Dense(3, units=3), "multiple values for argument 'units'"),  # type: ignore[misc]
        (
            lambda: mr.layers.AveragePooling2D(),
            r"^AveragePooling2D.__init__\(\) missing 1 required",
        ),  # type: ignore[call-arg]
        (lambda: mr.layers.Conv3D(*range(99)), r"^Conv3D.__init__\(\) takes from 3 to"),  # type: ignore[arg-type]
        (lambda: mr.Module("a", "b"), "takes from 1 to 2 positional arguments but 3 were given"),  # type: ignore[call-arg]
    ],
)
def test_other_errors_of_arguments_are_pythons_own(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_an_error_further_down_is_not_taken_for_one_of_the_call() -> None:
    def helper(x: int) -> int:
        return x

    def replica(args: int) -> int:
        return helper(args=args)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"helper\(\) got .* argument 'args'"):
        STRATEGY.run(replica, args=(1,))
    with pytest.raises(TypeError, match=r"replica\(\) got .* argument 'arg'"):
        STRATEGY.run(replica, kwargs={"arg": 1})


def public_calls() -> dict[str, Any]:
    """Return the functions and classes of all public modules, by their names."""
    found: dict[str, Any] = {}
    waiting, seen = [mr], set()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        if module.__name__ == WRAPPERS:
            continue
        values = {name: getattr(module, name) for name in dir(module) if name[0] != "_"}
        waiting += [each for each in values.values() if isinstance(each, ModuleType)]
        waiting = [each for each in waiting if each not in seen]
        found |= {f"{module.__name__}.{name}": value for name, value in values.items()}
    return found


CALLS = public_calls()
# What the library makes itself, in every step.
MADE_INSIDE = {
    *("DistributedValues", "Mirrored", "PerReplica", "SymbolicTensor", "Tensor", "TensorSpec"),
    *("DistributedVariable", "MirroredVariable", "SyncOnReadVariable", "Variable"),
    *("DistributedDataset", "DistributedIterator", "InputContext", "ValueContext"),
    *("IndexedSlices", "LogicalDevice", "PhysicalDevice", "ReplicaContext", "StrategyExtended"),
}
MADE_BY_USERS = {
    name: kind
    for name, kind in CALLS.items()
    if inspect.isclass(kind)
    and kind.__name__ not in MADE_INSIDE
    and kind.__module__ is not None  # Those of protobuf's messages.
    and not kind.__module__.startswith("numpy")
    and not issubclass(kind, BaseException | enum.Enum)
}


def test_every_public_function_with_options_explains_its_arguments() -> None:
    functions = {name: call for name, call in CALLS.items() if inspect.isfunction(call)}
    with_options = {n: each for n, each in functions.items() if has_options(inspect.unwrap(each))}
    assert "mirrored.reduce_sum" in with_options
    assert [name for name, each in with_options.items() if not is_explained(each)] == []


def test_every_public_class_explains_the_arguments_of_its_constructor() -> None:
    constructors = {
        name: getattr(kind, "__new__" if issubclass(kind, tuple) else "__init__")
        for name, kind in MADE_BY_USERS.items()
    }
    with_arguments = {
        name: made
        for name, made in constructors.items()
        if inspect.isfunction(made) and len(inspect.signature(made).parameters) > 1
    }
    assert "mirrored.layers.Dense" in with_arguments
    assert [name for name, made in with_arguments.items() if not is_explained(made)] == []


@pytest.mark.slow
def test_so_do_classes_that_need_more_packages() -> None:
    wrappers = mr.keras.wrappers
    assert all(is_explained(getattr(wrappers, name).__init__) for name in wrappers.__all__)


def test_what_a_private_base_takes_from_its_subclasses_is_no_argument_of_theirs() -> None:
    public = {kind for kind in MADE_BY_USERS.values() if issubclass(kind, mr.layers.Layer)}
    assert mr.layers.MultiHeadAttention in public
    wrong = {}
    for kind in public:
        bases = public.intersection(kind.__mro__)
        taken = {name for base in bases for name in inspect.signature(base).parameters}
        named = set(_called(kind.__init__, (object.__new__(kind),))[1])
        wrong[kind.__name__] = named - taken
    assert {name: names for name, names in wrong.items() if names} == {}
    with pytest.raises(TypeError, match=r"^BatchNormalization\(\) got .* argument 'beta'"):
        mr.layers.BatchNormalization(beta=None)  # type: ignore[call-arg]


def is_explained(function: Any) -> bool:
    """Say whether a function is what `explained` made of one."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.endswith("_arguments.py")


def test_other_names_of_a_function_stay_other_names_of_it() -> None:
    ops = mr.keras.ops
    assert ops.hard_swish is ops.hard_silu
    assert is_explained(ops.hard_swish)
    assert ops.swish is ops.silu
    assert not is_explained(ops.swish)
