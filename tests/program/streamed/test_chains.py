"""x"""

from typing import Any
import numpy as np
import mirrored as mr
from mirrored import ops
from mirrored.program.schedule import Region
from mirrored.program.streamed.chains import group

X = np.zeros((4, 3), np.float32)
B = np.zeros((3,), np.float32)


def grouping(graph):
    return [
        (
            "+".join(n.op.name for n in p.nodes)
            if isinstance(p, Region)
            else [n.op.name for n in p.nodes]
        )
        for p in group(graph.nodes)
    ]


def test_it(cards):
    cards.make(1)
    T = {
        "bias_relu": (
            lambda x, b: [ops.relu(ops.nn_bias(x, b)) if 0 else ops.relu(ops.OPS["BiasAdd"](x, b))],
            X,
            B,
        ),
        "product": (lambda x, b: [ops.relu((x @ ops.transpose(x)) + 1.0) * 2.0], X, B),
        "scalar": (lambda x, b: [x * ops.reduce_sum(x)], X, B),
        "scalar in chain": (lambda x, b: [x * ops.sqrt(ops.reduce_sum(x) + 1.0)], X, B),
        "broadcast in chain": (lambda x, b: [x * (b * 2.0)], X, B),
        "row": (lambda x, b: [(y := x * 2.0) + y[0]], X, B),
        "two": (lambda x, b: [x * 2.0, b * 3.0, x + 1.0, b - 1.0], X, B),
        "reshape": (lambda x, b: [ops.reshape(x * 2.0, (12,)) + 1.0], X, B),
        "empty": (lambda x, b: [x * 2.0 + 1.0], X[:0], B),
        "size1": (
            lambda x, b: [ops.reshape(x, (1, 1)) * 2.0, ops.reshape(x, ()) + 1.0],
            np.zeros((1,), np.float32),
            B,
        ),
        "sum between": (lambda x, b: [(y := x * 2.0) + ops.reduce_sum(y), y], X, B),
        "cast": (lambda x, b: [ops.cast(x > 0.0, "float32") * x], X, B),
    }
    for k, (f, *a) in T.items():
        print(k, grouping(cards.record(f, *a)))

    def loss(l, y, g=None):
        with mr.GradientTape() as t:
            t.watch(l)
            L = ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=l)
            total = ops.reduce_mean(L)
        return [total, t.gradient(total, l)]

    Y = np.zeros((4,), np.int32)
    print("loss", grouping(cards.record(loss, X, Y)))

    def loss2(l, y, g=None):
        with mr.GradientTape() as t:
            t.watch(l)
            L = ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=l)
            total = ops.reduce_sum(L * L)
        return [total, t.gradient(total, l)]

    print("loss2", grouping(cards.record(loss2, X, Y)))
    cards.make(2)
    v = None

    def sums(x, y):
        with cards.replica(0):
            a = x * 2.0
        with cards.replica(1):
            b = y * 3.0
        from mirrored.ops.recording import active_recorder
        from mirrored import devices

        s = active_recorder().sum_over_devices([a, b], devices.get_device("GPU:0"))
        with mr.device("GPU:1"):
            t = ops.identity(s) + 1.0
        return [s * 0.5, t]

    print("sums", grouping(cards.record(sums, X, X, replicas=2)))
