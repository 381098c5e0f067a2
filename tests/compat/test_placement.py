"""Where sessions place operations, what they tell of it, and towers on several GPUs."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
import mirrored.compat.v1 as tf
from mirrored import errors

FULL = "/job:localhost/replica:0/task:0/device:"
MakeGpus = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged since the last call."""
    lines = [each.replace(FULL, "") for each in caplog.messages if "Created" not in each]
    caplog.clear()
    return lines


def logging_session() -> tf.Session:
    return tf.Session(config=tf.ConfigProto(log_device_placement=True))


@pytest.mark.parametrize(
    ("gpus", "scopes", "devices"),
    [
        (0, (None, None), ("CPU:0", "CPU:0")),
        (4, (None, None), ("GPU:0", "GPU:0")),
        (4, ("/cpu:0", "/gpu:1"), ("CPU:0", "GPU:1")),
    ],
)
def test_the_sum_of_two_constants(
    make_gpus: MakeGpus,
    caplog: pytest.LogCaptureFixture,
    gpus: int,
    scopes: tuple[str | None, str | None],
    devices: tuple[str, str],
) -> None:
    cards = [f"GPU:{i} -> device: {i}, {card}" for i, card in enumerate(make_gpus(gpus))]
    with tf.device(scopes[0]):
        a = tf.constant([1.0, 2.0, 3.0], name="a")
        b = tf.constant([1.0, 2.0, 3.0], name="b")
    with tf.device(scopes[1]):
        c = a + b
    with logging_session() as session:
        head = ["Device mapping:", *cards] if gpus else ["Device mapping: no known devices."]
        assert lines_of(caplog) == head
        assert str(session.run(c)) == "[2. 4. 6.]"
        operands = [f"{name}: (Const): {devices[0]}" for name in "ab"]
        assert lines_of(caplog) == [*operands, f"add: (AddV2): {devices[1]}"]
        session.run(c)
        assert lines_of(caplog) == []
        tf.Variable(1.0, name="v")
        tf.global_variables_initializer()
        session.run(c)
        kinds = ["v/initial_value: (Const)", "v: (VariableV2)", "v/Assign: (Assign)"]
        kinds += ["v/read: (Identity)", "init: (NoOp)"]
        assert lines_of(caplog) == [f"{each}: {'GPU:0' if gpus else 'CPU:0'}" for each in kinds]


def _constant(device: str) -> Callable[[], Any]:
    def draw() -> Any:
        with tf.device(device):
            return tf.constant(1, name="a_gpu")

    return draw


def _variable() -> Any:
    with tf.device("/gpu:0"):
        return tf.Variable(1, name="a_gpu")


def _host_function() -> Any:
    with tf.device("/gpu:0"):
        return tf.py_func(lambda: np.int32(1), [], tf.int32, name="a_gpu")


def _product() -> Any:
    one = tf.constant([[1]], tf.int64, name="one")
    with tf.device("/gpu:0"):
        return tf.matmul(one, one, name="a_gpu")


def _printed() -> Any:
    one = tf.constant(1, name="one")
    with tf.device("/gpu:0"):
        return tf.Print(one, [one], name="a_gpu")


START = "Cannot assign a device for operation a_gpu: "
NOT_THERE = (
    f"{START}{{{{node a_gpu}}}} was explicitly assigned to %s but available devices are [ "
    f"{FULL}CPU:0, {FULL}GPU:0 ]. Make sure the device specification refers to a valid device.\n\t "
    "[[{{node a_gpu}}]]"
)
NO_KERNEL = (
    f"{START}Could not satisfy explicit device specification '/device:GPU:0' because no supported "
    "kernel for GPU devices is available.\nColocation Debug Info:\nColocation group had the "
    "following types and supported devices: \n%s\nColocation members, user-requested devices, and "
    "framework assigned devices, if any:\n%s\n\t [[{{node a_gpu}}]]"
)
# What is drawn, the error, and with soft placement the log: the device of each node.
WRONG: list[tuple[Callable[[], Any], str, dict[str, str]]] = [
    (_constant("GPU:9"), NOT_THERE % "/device:GPU:9", {"a_gpu: (Const)": "GPU:0"}),
    (_constant("/device:TPU:0"), NOT_THERE % "/device:TPU:0", {"a_gpu: (Const)": "GPU:0"}),
    (_constant("/cpu:3"), NOT_THERE % "/device:CPU:3", {"a_gpu: (Const)": "GPU:0"}),
    (_constant("/job:worker/cpu:0"), NOT_THERE % "/job:worker/device:CPU:0", {}),
    (
        _variable,
        NO_KERNEL
        % (
            "VariableV2: CPU \nAssign: CPU \nIdentity: CPU \n",
            "  a_gpu (VariableV2) /device:GPU:0\n  a_gpu/Assign (Assign) /device:GPU:0\n"
            "  a_gpu/read (Identity) /device:GPU:0",
        ),
        {
            "a_gpu/initial_value: (Const)": "GPU:0",
            "a_gpu: (VariableV2)": "CPU:0",
            "a_gpu/Assign: (Assign)": "CPU:0",
            "a_gpu/read: (Identity)": "CPU:0",
        },
    ),
    (
        _product,
        NO_KERNEL % ("MatMul: CPU \n", "  a_gpu (MatMul) /device:GPU:0"),
        {"one: (Const)": "CPU:0", "a_gpu: (MatMul)": "CPU:0"},
    ),
    (
        _host_function,
        NO_KERNEL % ("PyFunc: CPU \n", "  a_gpu (PyFunc) /device:GPU:0"),
        {"a_gpu: (PyFunc)": "CPU:0"},
    ),
    (
        _printed,
        NO_KERNEL % ("Print: CPU \n", "  a_gpu (Print) /device:GPU:0"),
        {"one: (Const)": "CPU:0", "a_gpu: (Print)": "CPU:0"},
    ),
]


@pytest.mark.parametrize(("draw", "text", "soft"), WRONG)
def test_placements_that_cannot_be(
    make_gpus: MakeGpus,
    caplog: pytest.LogCaptureFixture,
    draw: Callable[[], Any],
    text: str,
    soft: dict[str, str],
) -> None:
    """All of the graph is placed, also what is not fetched; soft placement finds another device."""
    make_gpus(1)
    drawn, other = draw(), tf.constant(2.0, name="other")
    init = tf.global_variables_initializer()
    with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        tf.Session().run(other)
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)
    with tf.Session(config=config) as session:
        lines_of(caplog)
        if not soft:  # It is for another process, which no other device is.
            with pytest.raises(errors.InvalidArgumentError, match=f"^{re.escape(text)}$"):
                session.run(other)
            return
        session.run(init)
        assert session.run(drawn) == 1
        placed = {**soft, "other: (Const)": "GPU:0", "init: (NoOp)": "GPU:0"}
        assert lines_of(caplog) == [f"{node}: {device}" for node, device in placed.items()]


def _of_no_device() -> None:
    """Draw what has no device, for what has one; TensorFlow 2.21 was asked with several CPUs."""
    alone, shared = tf.constant(1.0, name="alone"), tf.constant(2.0, name="shared")
    fed = tf.placeholder(tf.float32, [None], name="fed")
    with tf.device("/gpu:1"):
        v = tf.Variable(3.0, name="v")
        total = tf.add(alone, shared, name="total")
        doubled = tf.add(fed, fed, name="doubled")
    with tf.device("/cpu:0"):
        tf.add(total, shared, name="again")
    tf.shape(doubled, name="size")
    tf.shape(total, name="known")
    tf.assign(v, 4.0, name="set")
    tf.group(v.initializer, tf.no_op(name="first"), name="both")
    tf.global_variables_initializer()


PLACED = {
    "alone": "GPU:1",
    "shared": "GPU:0",
    "fed": "GPU:1",
    "v/initial_value": "GPU:1",
    "v": "GPU:1",
    "v/Assign": "GPU:1",
    "v/read": "GPU:1",
    "total": "GPU:1",
    "doubled": "GPU:1",
    "again": "CPU:0",
    "size": "GPU:1",
    "known": "GPU:0",
    "set/value": "GPU:1",
    "set": "GPU:1",
    "first": "GPU:0",
    "both/NoOp": "GPU:0",
    "both/NoOp_1": "GPU:1",
    "both": "GPU:0",
    "init": "GPU:1",
}


def test_what_begins_a_graph_is_where_it_is_taken(
    make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture
) -> None:
    make_gpus(2)
    _of_no_device()
    with logging_session() as session:
        session.run("init")
    placed = [each.rpartition(" (") for each in lines_of(caplog)[3:]]
    assert {node[:-1]: where.partition(": ")[2] for node, _, where in placed} == PLACED


def test_operations_run_where_the_session_says(
    make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture
) -> None:
    """Soft placement is the session's, whatever it is outside."""
    make_gpus(2)
    with tf.device("/gpu:7"):
        a = tf.constant([1.0, 2.0], name="a")
    with tf.device("/gpu:1"):
        v = tf.Variable([3.0, 4.0], name="v")
        total = tf.add(a, v, name="total")
    with tf.device("/cpu:0"):
        mean = tf.reduce_mean(total, name="mean")
    mr.config.set_soft_device_placement(False)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(v.initializer)
        lines_of(caplog)
        mr.debugging.set_log_device_placement(True)
        assert session.run(mean) == 5.0
        placed = [each for each in lines_of(caplog) if "(" in each and "Const" not in each]
        assert placed == [
            "ReadVariableOp: (ReadVariableOp): GPU:1",
            "AddV2: (AddV2): GPU:1",
            "Mean: (Mean): CPU:0",
        ]


# The dtypes of which TensorFlow has kernels for GPUs: of `VariableV2` those that the registry of
# TensorFlow 2.21 lists for any device, and of products those in matmul_op_real.cc.
KEPT = {"bool", "float16", "float32", "float64", "int64", "uint32"}
NOT_KEPT = {"int8", "int16", "int32", "uint8", "uint16", "uint64"}
MULTIPLIED = {"float16": "GPU:0", "float32": "GPU:0", "int32": "CPU:0", "int64": "CPU:0"}


def places_of(caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """Return the device of each operation that was placed, by its name."""
    placed = [each.rpartition(" (") for each in lines_of(caplog)[2:]]
    return {node[:-1]: where.partition(": ")[2] for node, _, where in placed}


def test_dtypes_of_which_a_gpu_has_kernels(
    make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture
) -> None:
    make_gpus(1)
    variables = [tf.Variable(np.ones(2, each), name=each) for each in sorted(KEPT | NOT_KEPT)]
    expected = {each: "GPU:0" if each in KEPT else "CPU:0" for each in KEPT | NOT_KEPT}
    products = []
    for dtype, where in MULTIPLIED.items():
        x = tf.constant(np.full((2, 2), 3, dtype))
        pair = tf.expand_dims(x, 0)
        with tf.name_scope(f"of_{dtype}"):
            products += [tf.matmul(x, x), tf.matmul(pair, pair), tf.tensordot(x, x, 1)]
            products += [tf.einsum("ij,jk->ik", x, x), tf.linalg.matvec(x, x[0])]
        kinds = ("MatMul", "MatMul_1", "Tensordot", "einsum", "MatVec")
        expected.update((f"of_{dtype}/{kind}", where) for kind in kinds)
    with logging_session() as session:
        session.run(tf.global_variables_initializer())
        assert {float(each) for found in session.run(variables) for each in found} == {1.0}
        found = session.run(products)
    assert {float(each) for product in found for each in product.flat} == {18.0}
    placed = places_of(caplog)
    assert {each: placed[each] for each in expected} == expected


def test_where_matrices_are_taken_apart(
    make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture
) -> None:
    make_gpus(1)
    x = tf.constant(np.eye(2), name="x")
    y = tf.linalg.inv(x, name="y")
    others = [tf.linalg.det(x), tf.cholesky(x), tf.matrix_solve(x, x), tf.qr(x)[0], tf.svd(x)[0]]
    others += [tf.matrix_triangular_solve(x, x), tf.self_adjoint_eig(x)[0]]
    with logging_session() as session:
        session.run([y, tf.gradients(y, x), others])
    placed = places_of(caplog)
    assert {placed[each.op.name] for each in (y, *others)} == {"GPU:0"}
    with tf.device("/gpu:0"):
        again = tf.linalg.inv(x, name="again")
    assert tf.Session().run(again).tolist() == np.eye(2).tolist()


def test_a_variable_lies_on_the_device_of_its_scope(make_gpus: MakeGpus) -> None:
    make_gpus(2)
    gpus = mr.config.list_logical_devices("GPU")
    used = [mr.config.experimental.get_memory_info(each.name)["current"] for each in gpus]
    with tf.device("/gpu:1"):
        v = tf.Variable(np.zeros(1000, np.float32))
    with tf.Session() as session:
        session.run(v.initializer)
        now = [mr.config.experimental.get_memory_info(each.name)["current"] for each in gpus]
        assert now[0] - used[0] < 4000 <= now[1] - used[1]


@pytest.mark.parametrize("device", ["CPU:0", "GPU:0"])
def test_the_lesson(make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture, device: str) -> None:
    """A random matrix times its transpose, summed."""
    (card,) = make_gpus(1)
    with tf.device(f"/{device.lower()}"):
        matrix = tf.random_uniform(shape=[50, 50], minval=0, maxval=1)
        total = tf.reduce_sum(tf.matmul(matrix, tf.transpose(matrix)))
    with logging_session() as session:
        found, again = session.run(total), session.run(total)
    assert found != again
    assert found == pytest.approx(50**3 / 4, rel=0.1)
    nodes = ["random_uniform/shape: (Const)", "random_uniform/RandomUniform: (RandomUniform)"]
    nodes += ["transpose/perm: (Const)", "transpose: (Transpose)"]
    nodes += ["MatMul: (MatMul)", "Const: (Const)", "Sum: (Sum)"]
    assert lines_of(caplog) == [
        "Device mapping:",
        f"GPU:0 -> device: 0, {card}",
        *(f"{node}: {device}" for node in nodes),
    ]


def test_towers_are_one_device(make_gpus: MakeGpus, caplog: pytest.LogCaptureFixture) -> None:
    """Variables on the CPU, a quarter of the batch on each GPU, gradients averaged on the CPU."""
    make_gpus(4)
    rng = np.random.default_rng(5)
    # Numbers that float32 holds, which `fit` hands to models.
    xs, ys = (np.float64(np.float32(rng.normal(size=(16, size)))) for size in (3, 2))
    x, y = tf.placeholder(tf.float64, [16, 3]), tf.placeholder(tf.float64, [16, 2])
    with tf.device("/cpu:0"):
        w = tf.get_variable("w", [3, 2], tf.float64, tf.ones_initializer())
        optimizer = tf.train.MomentumOptimizer(0.125, 0.5)
        parts = zip(tf.split(x, 4), tf.split(y, 4), strict=True)
    towers = []
    for index, (part, target) in enumerate(parts):
        with tf.device(f"/gpu:{index}"), tf.name_scope(f"tower_{index}"):
            loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(part, w)) - target))
            towers.append(optimizer.compute_gradients(loss, [w])[0][0])
    with tf.device("/cpu:0"):
        train = optimizer.apply_gradients([(tf.add_n(towers) / 4.0, w)])
    with logging_session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(train, {x: xs, y: ys})
        weights = session.run(w)
    placed = [each.rpartition(": ") for each in lines_of(caplog)[5:]]
    for node, _, where in placed:
        tower = re.match(r"tower_(\d)/", node)
        kept = "CPU:0" if node[0] == "w" or "Momentum" in node else None
        assert where == (f"GPU:{tower[1]}" if tower else kept or where), node
    assert {where for _, _, where in placed} == {"CPU:0", *(f"GPU:{i}" for i in range(4))}

    strategy = mr.MirroredStrategy()
    with strategy.scope():
        model = mr.Sequential(
            [mr.layers.Dense(2, "tanh", use_bias=False, kernel_initializer="ones", dtype="float64")]
        )
        loss = mr.losses.MeanSquaredError(dtype="float64")
        model.compile(mr.optim.SGD(0.125, momentum=0.5), loss)
    model.fit(xs, ys, batch_size=16, epochs=5, shuffle=False, verbose=0)
    np.testing.assert_allclose(weights, model.get_weights()[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: tf.ConfigProto(soft=True), ValueError, 'ConfigProto has no "soft" field.'),
        (lambda: tf.Session(config=3), TypeError, "must be a tf.ConfigProto, but got "),
    ],
)
def test_configurations_that_are_wrong(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        make()
    config = tf.ConfigProto()
    with pytest.raises(AttributeError):
        config.no_such_field = True
    config.gpu_options.allow_growth = True
    tf.Session(config=config).close()
