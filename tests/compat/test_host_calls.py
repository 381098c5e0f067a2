"""`py_func` and `Print`: Python that each run calls."""

from collections.abc import Iterator

import numpy as np
import pytest

import mirrored.compat.v1 as tf
from mirrored import errors

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def test_a_function_of_python_is_called_in_each_run() -> None:
    calls = []

    def noting(x: np.ndarray, n: np.ndarray) -> list[np.ndarray]:
        calls.append(int(n))
        return [np.repeat(x, n), np.float32(n)]

    x = tf.placeholder(tf.float32)
    v = tf.Variable(1.0)
    repeated, n = tf.py_func(noting, [x, tf.shape(x)[0]], [tf.float32, tf.float32])
    assert (repeated.shape.ndims, repeated.op.type) == (None, "PyFunc")
    total = tf.reduce_sum(repeated * v)
    (by_v,) = tf.gradients(total, v)
    assert tf.gradients(total, x) == [None]
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([total, n], {x: [1.0, 2.0]}) == [6.0, 2.0]
        assert session.run(by_v, {x: [1.0, 2.0, 3.0]}) == 18.0
        with pytest.raises(errors.InvalidArgumentError, match="expects int64"):
            session.run(tf.py_func(lambda: np.float32(1.0), [], tf.int64))
    assert calls == [2, 3]


# What is printed in each of two runs, and what TensorFlow 2.21 writes to standard error for it.
PRINTS = [
    ("[a], 'one: '", "one: [1 2.5 3.25...]\n" * 2),
    ("[a, m, n, b], 'four '", "four [1 2.5 3.25...][[1 2 3]...][7][1 0]\n" * 2),
    ("[m], summarize=10", "[[1 2 3][4 5 6]]\n" * 2),
    ("[m], summarize=4", "[[1 2 3][4...]...]\n" * 2),
    ("[c, c], first_n=1, summarize=5", "[[[0 1][2 3][4...]]...]" * 2 + "\n"),
    ("[], 'none'", "none\n" * 2),
    ("[a], 'none', summarize=0", "none[...]\n" * 2),
]


@pytest.mark.parametrize(("arguments", "text"), PRINTS)
def test_prints(capsys: pytest.CaptureFixture[str], arguments: str, text: str) -> None:
    names = {
        "tf": tf,
        "a": tf.constant([1.0, 2.5, 3.25, 4.0]),
        "m": tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        "n": tf.constant(7),
        "b": tf.constant([True, False]),
        "c": tf.constant(np.arange(12).reshape(2, 3, 2)),
    }
    printed = eval(f"tf.Print(a, {arguments})", names)
    with tf.Session() as session:
        for _ in range(2):
            assert session.run(tf.gradients(printed * 2.0, names["a"])[0]).tolist() == [2.0] * 4
    assert capsys.readouterr().err == text
