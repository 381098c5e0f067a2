"""`tf.metrics`: what is expected is what TensorFlow 2.21 computes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import mirrored.compat.v1 as tf

pytestmark = pytest.mark.usefixtures("hardware")


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


BATCHES = [([1, 0, 1, 1], [1, 1, 1, 0], [1.0, 2.0, 0.0, 1.0]), ([0, 0], [0, 1], [1.0, 0.5])]
# A metric, and what it is after each of the batches.
METRICS = [
    ("mean(scores)", [1.125, 1.0]),
    ("mean(scores, w)", [1.125, 0.9545455]),
    ("mean(tf.stack([scores, scores], 1), w)", [1.125, 0.9545455]),
    ("mean(scores, 2.0, ['a'], ['b'], 'mine')", [1.125, 1.0]),
    ("accuracy(l, p)", [0.5, 0.5]),
    ("accuracy(labels=l, predictions=tf.expand_dims(p, 1), weights=w)", [0.25, 0.3636364]),
    ("mean_squared_error(l, scores)", [0.9375, 1.0]),
    ("root_mean_squared_error(l, scores)", [0.9682458, 1.0]),
    ("mean_absolute_error(l, scores)", [0.875, 0.8333333]),
    ("precision(l, p)", [0.6666667, 0.5]),
    ("precision(l, p, w)", [0.3333333, 0.2857143]),
    ("recall(l, p)", [0.6666667, 0.6666667]),
    ("recall(l, p, w)", [0.5, 0.5]),
]


@pytest.mark.parametrize(("code", "expected"), METRICS)
def test_metrics(code: str, expected: list[float]) -> None:
    l, p = (tf.placeholder(tf.int64, [None]) for _ in range(2))  # noqa: E741
    w = tf.placeholder(tf.float32, [None])
    names = {"tf": tf, "l": l, "p": p, "w": w, "scores": tf.to_float(p) * 1.5}
    so_far, update = eval(f"tf.metrics.{code}", names)
    assert len(tf.local_variables()) == len(tf.get_collection("metric_variables")) == 2
    assert tf.global_variables() == []
    assert tf.get_collection("a") + tf.get_collection("b") in ([], [so_far, update])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(so_far) == 0.0
        for fed, value in zip(BATCHES, expected, strict=True):
            given: dict[Any, Any] = dict(zip((l, p, w), fed, strict=True))
            assert session.run(update, given) == pytest.approx(value, rel=1e-6)
            assert session.run(so_far) == pytest.approx(value, rel=1e-6)


def test_names_of_variables() -> None:
    x = tf.placeholder(tf.int64, [None])
    tf.metrics.accuracy(x, x)
    tf.metrics.accuracy(x, x, name="acc")
    tf.metrics.precision(x, x)
    assert [each.name for each in tf.local_variables()] == [
        "accuracy/total:0",
        "accuracy/count:0",
        "acc/total:0",
        "acc/count:0",
        "precision/true_positives/count:0",
        "precision/false_positives/count:0",
    ]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("accuracy([1, 2], [1, 2, 3])", "Shapes (3,) and (2,) are incompatible"),
        ("mean([1.0, 2.0], [1.0, 2.0, 3.0])", "weights can not be broadcast to values. values.sha"),
    ],
)
def test_what_is_wrong(code: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        eval(f"tf.metrics.{code}", {"tf": tf})
