"""What a run of a session costs beside a call of a recorded function that computes the same.

`python -m benchmarks.sessions` prints the table of docs/reference/benchmarks.md.
Both are fed NumPy arrays
and return the loss as NumPy's number, on the CPU, in one process, in turns.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.contenders.blas import blas_facts
from benchmarks.ops import microseconds
from benchmarks.processes import clean_environment

Array = np.ndarray[Any, Any]
Step = Callable[[], Any]
_RATE = 0.01


def rows() -> dict[str, tuple[Step, Step]]:
    """Return what is measured: of each a run of a session and a call of a function."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 1), dtype=np.float32)
    pixels = rng.standard_normal((128, 64), dtype=np.float32)
    digits = rng.integers(0, 10, 128)
    return {
        "a line, batch 64": _pair(x, 3.0 * x + 1.0, [1, 1]),
        "64-128-10, batch 128": _pair(pixels, digits, [64, 128, 10]),
    }


def _pair(x: Array, y: Array, sizes: list[int]) -> tuple[Step, Step]:
    rng = np.random.default_rng(1)
    weights = [
        rng.standard_normal(pair, dtype=np.float32) / pair[0] for pair in itertools.pairwise(sizes)
    ]
    return _session_step(x, y, weights), _function_step(x, y, weights)


def _session_step(x: Array, y: Array, weights: list[Array]) -> Step:
    """Return a training step as a program of TensorFlow 1 has it."""
    import mirrored.compat.v1 as tf

    with tf.Graph().as_default() as graph:
        inputs = tf.placeholder(tf.float32, [None, x.shape[1]])
        targets = tf.placeholder(str(y.dtype), [None, *y.shape[1:]])
        made = [(tf.Variable(w), tf.Variable(np.zeros(w.shape[1], np.float32))) for w in weights]
        outputs = inputs
        for number, (kernel, bias) in enumerate(made):
            outputs = tf.matmul(outputs, kernel) + bias
            outputs = tf.nn.relu(outputs) if number + 1 < len(made) else outputs
        if y.dtype.kind == "f":
            loss = tf.reduce_mean(tf.square(outputs - targets))
        else:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=outputs)
            )
        train = tf.train.GradientDescentOptimizer(_RATE).minimize(loss)
        init = tf.global_variables_initializer()
    session = tf.Session(graph=graph)
    session.run(init)
    return lambda: session.run([train, loss], feed_dict={inputs: x, targets: y})[1]


def _function_step(x: Array, y: Array, weights: list[Array]) -> Step:
    """Return the same step as a recorded function."""
    import mirrored as mr

    made = [(mr.Variable(w), mr.Variable(np.zeros(w.shape[1], np.float32))) for w in weights]
    variables = [variable for pair in made for variable in pair]
    optimizer = mr.optim.SGD(_RATE)

    @mr.function
    def step(inputs: Any, targets: Any) -> Any:
        with mr.GradientTape() as tape:
            outputs = inputs
            for number, (kernel, bias) in enumerate(made):
                outputs = mr.matmul(outputs, kernel) + bias
                outputs = mr.nn.relu(outputs) if number + 1 < len(made) else outputs
            if y.dtype.kind == "f":
                loss = mr.reduce_mean(mr.square(outputs - targets))
            else:
                loss = mr.reduce_mean(
                    mr.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
                )
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return lambda: step(x, y).numpy()


def times(steps: tuple[Step, Step], rounds: int) -> list[float]:
    """Return the microseconds of a run of the session and of a call of the function.

    Raises:
        ValueError: Their losses are not the same.
    """
    losses = [[float(step()) for _ in range(5)] for step in steps]
    if not np.allclose(*losses, rtol=1e-4):
        raise ValueError(f"A session and a function do not train the same: {losses}.")
    taken: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for found, step in zip(taken, steps, strict=True):
            found.append(microseconds(step, ()))
    return [statistics.median(times) for times in taken]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25, help="timings per row (default: 25)")
    options = parser.parse_args()
    if not os.environ.get("_BENCHMARK_CLEAN"):  # BLAS reads its settings when it is loaded.
        environment = clean_environment(os.environ) | {"_BENCHMARK_CLEAN": "1"}
        command = [sys.executable, "-m", "benchmarks.sessions", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    print(f"{blas_facts()}; medians of {options.rounds} rounds\n")
    print("| training step | `Session.run`, us | `mr.function`, us | more, us |")
    print("| --- " + "| ---: " * 3 + "|")
    for name, steps in rows().items():
        session, function = times(steps, options.rounds)
        print(f"| {name} | {session:.1f} | {function:.1f} | {session - function:.1f} |", flush=True)


if __name__ == "__main__":
    main()
