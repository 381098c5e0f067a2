"""The policies, and the layers that are made under them."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.layers import policy as policies
from mirrored.layers.policy import DTypePolicy

mixed_precision = mr.keras.mixed_precision


@pytest.fixture(autouse=True)
def own_policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the global policies of a test end with it."""
    monkeypatch.setattr(policies, "_global", [])
    yield
    mr.keras.backend.set_floatx("float32")


class Scale(mr.layers.Layer):
    """A layer of the user's own, which knows nothing of policies."""

    def build(self, input_shape: Any) -> None:
        """Create the factor."""
        self.factor = self.add_weight(shape=input_shape[-1:], initializer="ones", name="factor")

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        """Return the inputs, scaled."""
        return inputs * mr.reshape(self.factor, (1, -1))


@pytest.mark.parametrize(
    ("name", "compute", "variable"),
    [
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("mixed_bfloat16", "bfloat16", "float32"),
    ],
)
def test_dtypes_of_a_policy(name: str, compute: str, variable: str) -> None:
    policy = mixed_precision.Policy(name)
    assert (policy.name, policy.compute_dtype, policy.variable_dtype) == (name, compute, variable)
    assert repr(policy) == f'<DTypePolicy "{name}">'
    assert policy == DTypePolicy(name)
    assert hash(policy) == hash(DTypePolicy(name))
    assert policy != DTypePolicy("int32")
    assert policy != name


@pytest.mark.behaviour("mixed-precision")
@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        (
            "foo",
            ValueError,
            "Cannot convert 'foo' to a mixed precision DTypePolicy. Valid",
        ),
        ("mixed_foo", ValueError, "Received: name='mixed_foo'"),
        ("mixed_float16", ValueError, "Use 'mixed_bfloat16', which has the range of float32"),
        ("float16", ValueError, "depends on the number of replicas"),
        ("bfloat16", ValueError, "Use 'mixed_bfloat16', which computes in bfloat16 and keeps"),
        (3, TypeError, "'name' must be a string, such as 'mixed_bfloat16'. Received: name=3"),
        (None, TypeError, "Received: name=None"),
    ],
)
def test_policies_that_there_are_not(name: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        mixed_precision.Policy(name)
    assert text in str(caught.value)


def test_the_global_policy_is_that_of_floatx_until_it_is_set() -> None:
    assert mixed_precision.global_policy() == DTypePolicy("float32")
    mr.keras.backend.set_floatx("float64")
    assert mixed_precision.global_policy() == DTypePolicy("float64")
    mixed_precision.set_global_policy("mixed_bfloat16")
    mr.keras.backend.set_floatx("float32")
    assert mixed_precision.global_policy() == DTypePolicy("mixed_bfloat16")
    mixed_precision.set_global_policy(DTypePolicy("float32"))
    assert mixed_precision.global_policy() == DTypePolicy("float32")


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (
            None,
            "Expected the string name of a policy (such as 'mixed_bfloat16') or a",
        ),
        (3, "Received: policy=3 (of type <class 'int'>)"),
        ("foo", "Cannot convert 'foo'"),
    ],
)
def test_what_cannot_be_the_global_policy(policy: Any, text: str) -> None:
    mixed_precision.set_global_policy("mixed_bfloat16")
    with pytest.raises(ValueError, match=re.escape(text)):
        mixed_precision.set_global_policy(policy)
    assert mixed_precision.global_policy().name == "mixed_bfloat16"


@pytest.mark.behaviour("mixed-precision")
@pytest.mark.parametrize("policy", ["mixed_bfloat16", DTypePolicy("mixed_bfloat16"), None])
def test_a_mixed_layer(policy: Any) -> None:
    if policy is None:
        mixed_precision.set_global_policy("mixed_bfloat16")
    layer = mr.layers.Dense(3, dtype=policy)
    assert layer.dtype == layer.variable_dtype == mr.float32
    assert layer.compute_dtype == mr.bfloat16
    assert layer.dtype_policy == DTypePolicy("mixed_bfloat16")
    assert layer(np.ones((2, 4))).dtype == mr.bfloat16
    assert [weight.dtype for weight in layer.weights] == [mr.float32] * 2


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("AlphaDropout", "Dropout", "GaussianDropout", "SpatialDropout1D"), (0.2,)),
    **dict.fromkeys(("GaussianNoise", "LeakyReLU", "SpatialDropout2D", "SpatialDropout3D"), (0.2,)),
    **dict.fromkeys(("RandomBrightness", "RandomContrast", "RandomRotation", "RandomZoom"), (0.2,)),
    **dict.fromkeys(("CenterCrop", "RandomTranslation", "Resizing"), (1, 1)),
    **dict.fromkeys(("CategoryEncoding", "RepeatVector", "Dense"), (2,)),
    **dict.fromkeys(("Embedding", "ReversibleEmbedding", "MultiHeadAttention"), (4, 3)),
    **{
        f"{kind}{rank}D{end}": (4, 2)
        for kind in ("Conv", "Convolution", "SeparableConv", "SeparableConvolution")
        for rank in (1, 2, 3)
        for end in ("", "Transpose")
    },
    **{
        f"{kind}{rank}D": (2,)
        for kind in ("AveragePooling", "AvgPool", "DepthwiseConv")
        for rank in (1, 2, 3)
    },
    "Activation": ("relu",),
    "Discretization": ([1.0, 2.0],),
    "Dot": (1,),
    "EinsumDense": ("ab,bc->ac", 3),
    "GroupQueryAttention": (2, 4, 2),
    "Permute": ((1,),),
    "Rescaling": (2.0,),
    "Reshape": ((3,),),
}


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float64"])
def test_layers_that_are_read_have_the_policy_of_those_written(policy: str) -> None:
    """All but inputs and pipelines, which compute nothing, and the bases of other layers."""
    others = {"Input", "InputLayer", "Lambda", "Layer", "Pipeline", "Wrapper"}
    names = set(mr.layers.__all__) - others
    mixed_precision.set_global_policy(policy)
    inner = mr.layers.Dense(2)
    wrapping = {name: (inner,) for name in ("SpectralNormalization", "TimeDistributed")}
    arguments = {**ARGUMENTS, **wrapping}
    looked_at = 0
    for name in sorted(names):
        kind = getattr(mr.layers, name)
        if not (isinstance(kind, type) and issubclass(kind, mr.layers.Layer)):
            continue
        layer = kind(*arguments.get(name, ()))
        config = layer.get_config()
        mixed_precision.set_global_policy("float32")
        assert kind.from_config(config).dtype_policy == layer.dtype_policy, name
        mixed_precision.set_global_policy(policy)
        looked_at += 1
    assert looked_at > 45


def test_a_layer_of_another_policy_than_the_global_one() -> None:
    mixed_precision.set_global_policy("mixed_bfloat16")
    layer = mr.layers.Dense(3, dtype="float32")
    assert layer.dtype == layer.compute_dtype == mr.float32
    assert layer(mr.ones((2, 4), mr.bfloat16)).dtype == mr.float32


@pytest.mark.parametrize(
    ("dtype", "error"), [("foo", TypeError), ("mixed_foo", ValueError), ("bfloat16", ValueError)]
)
def test_dtypes_that_layers_cannot_have(dtype: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=dtype):
        mr.layers.Dense(3, dtype=dtype)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mr.layers.Dense(3, activation="tanh"),
        lambda: mr.layers.Dropout(0.5, seed=1),
        lambda: mr.layers.Activation("softmax"),
        lambda: mr.layers.Flatten(),
        lambda: Scale(),
    ],
)
def test_layers_compute_what_they_do_in_float32(make: Any) -> None:
    x = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    mr.random.set_seed(3)
    expected = make()(x, training=True).numpy()
    mixed_precision.set_global_policy("mixed_bfloat16")
    mr.random.set_seed(3)
    result = make()(x, training=True)
    assert result.dtype == mr.bfloat16
    np.testing.assert_allclose(result.numpy().astype(np.float32), expected, rtol=0.02, atol=0.02)
    np.testing.assert_array_equal(result.numpy() == 0, expected == 0)


def test_weights_get_float32_gradients() -> None:
    layer = mr.layers.Dense(2, use_bias=False, dtype="mixed_bfloat16", kernel_initializer="ones")
    x = mr.constant([[1.0, 3.0]])
    with mr.GradientTape() as tape:
        tape.watch(x)
        target = mr.reduce_sum(mr.cast(layer(x), mr.float32))
    by_x, by_kernel = tape.gradient(target, [x, layer.kernel])
    assert by_x.dtype == by_kernel.dtype == mr.float32
    assert by_x.numpy().tolist() == [[2.0, 2.0]]
    assert by_kernel.numpy().tolist() == [[1.0, 1.0], [3.0, 3.0]]


def test_a_layer_in_a_mixed_layer_follows_its_own_policy() -> None:
    class Outer(mr.layers.Layer):
        def __init__(self) -> None:
            super().__init__(dtype="mixed_bfloat16")
            self.exact, self.own = Scale(dtype="float32"), None

        def build(self, input_shape: Any) -> None:
            self.own = self.add_weight(shape=(2,), initializer="ones", name="own")

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            inner = self.exact(inputs)
            assert inner.dtype == mr.float32
            return mr.cast(inner, inputs.dtype) + self.own

    assert Outer()([[1.0, 2.0]]).dtype == mr.bfloat16


def test_placeholders_have_the_dtype_of_what_comes() -> None:
    mixed_precision.set_global_policy("mixed_bfloat16")
    x = mr.layers.Input((4,))
    hidden = Scale()(mr.layers.Dense(3)(x))
    assert (x.dtype, hidden.dtype) == (mr.float32, mr.bfloat16)
    assert mr.layers.Dense(2, dtype="float32")(hidden).dtype == mr.float32


def test_values_in_bfloat16_are_inputs_and_weights() -> None:
    narrow = np.ones((1, 2), mr.bfloat16)
    layer = mr.layers.Dense(1, use_bias=False)
    assert layer(narrow).dtype == mr.float32
    layer.set_weights([narrow.T])
    assert layer(narrow).numpy().tolist() == [[2.0]]


def test_the_policy_of_a_layer_can_be_set() -> None:
    layer = mr.layers.Dense(2)
    layer(np.ones((1, 2)))
    layer.dtype_policy = "mixed_bfloat16"
    assert layer(np.ones((1, 2))).dtype.name == layer.compute_dtype.name == "bfloat16"
    assert (layer.kernel.dtype.name, layer.dtype_policy.name) == ("float32", "mixed_bfloat16")
    layer.dtype_policy = DTypePolicy("float32")
    assert layer(np.ones((1, 2))).dtype.name == "float32"
    with pytest.raises(ValueError, match="do not compute in float16"):
        layer.dtype_policy = "float16"
    encoding = mr.layers.CategoryEncoding(3)
    encoding.dtype_policy = "mixed_bfloat16"  # Rounded, integers would be others.
    assert encoding([[1, 2]]).dtype.name == "float32"
    model = mr.Sequential([mr.layers.Input((2,), dtype="float64"), layer])
    model.dtype_policy = "mixed_bfloat16"
    assert model(np.ones((1, 2))).dtype.name == "float32"


class _Factor(mr.layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.factor = self.add_weight((), "ones", name="factor", autocast=False)

    def call(self, x: Any) -> Any:
        return x * self.factor


def test_what_is_not_cast() -> None:
    identity = mr.layers.Identity(autocast=False)
    assert not identity.autocast
    assert identity(np.ones(1, "float64")).dtype.name == "float64"
    assert identity([1.0]).dtype.name == "float32"
    identity.autocast = True
    assert identity(np.ones(1, "float64")).dtype.name == "float32"
    layer = _Factor(dtype="mixed_bfloat16")
    with pytest.raises(mr.errors.InvalidArgumentError, match="expected to be a bfloat16 tensor"):
        layer(np.ones((1, 2)))
    assert not layer.factor.autocast
    assert _Factor()(np.ones((1, 2))).dtype.name == "float32"
