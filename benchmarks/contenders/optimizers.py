"""Times steps of optimizers in the environment of whoever wrote them.

`python optimizers.py LIBRARY SIZE ROUNDS SECONDS [NAME ...]` prints a line of JSON;
`benchmarks/optimizers.py` asks for it. A step computes gradients, by one product for each weight,
and changes the weights.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# The shapes of a network's weights: of one whose steps are calls, and of one whose are memory.
SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "small": ((64, 64), (64,)) * 4,
    "large": ((1024, 1024), (1024,)) * 8,
}
CHECKED = 3  # After so many steps the weights are compared.
_RATE, _DECAY, _EPSILON = 1e-3, 0.01, 1e-8
_FACTOR = 0.5  # Of the gradients.

# What takes a step, and what says how large the weights are now.
Run = tuple[Callable[[], Any], Callable[[], float]]


def mirrored(name: str, shapes: tuple[tuple[int, ...], ...]) -> Run:
    """Return the step of an optimizer in a recorded function."""
    import mirrored as mr

    settings = {"Adam": {"epsilon": _EPSILON}}
    settings["AdamW"] = {"epsilon": _EPSILON, "weight_decay": _DECAY}
    if name == "LossScaleOptimizer":
        optimizer = mr.optim.LossScaleOptimizer(mr.optim.Adam(_RATE, epsilon=_EPSILON))
    elif name == "SGD with momentum":
        optimizer = mr.optim.SGD(_RATE, momentum=0.9)
    elif name == "Adam by `update_step`":
        optimizer = _by_variable(mr)(_RATE, epsilon=_EPSILON)
    else:
        optimizer = getattr(mr.optim, name)(_RATE, **settings.get(name, {}))
    weights = [mr.Variable(value) for value in values(shapes, 0)]
    sources = [mr.Variable(value, trainable=False) for value in values(shapes, 1)]

    @mr.function
    def step() -> None:
        gradients = [source * _FACTOR for source in sources]
        optimizer.apply_gradients(zip(gradients, weights, strict=True))

    return step, lambda: sum(float(np.square(weight.numpy()).sum()) for weight in weights)


def _by_variable(mr: Any) -> Any:
    class Adam(mr.optim.Adam):  # type: ignore[misc]
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(gradient, variable, learning_rate)

    return Adam


def torch(name: str, shapes: tuple[tuple[int, ...], ...]) -> Run:
    """Return the step of an optimizer of PyTorch, "Adam" or "AdamW", or one of their forms."""
    import torch

    kind, _, form = name.partition(" ")
    weights = [torch.nn.Parameter(torch.from_numpy(value)) for value in values(shapes, 0)]
    sources = [torch.from_numpy(value) for value in values(shapes, 1)]
    settings: dict[str, Any] = {form: True} if form else {}
    settings["weight_decay"] = _DECAY if kind == "AdamW" else 0.0
    optimizer = getattr(torch.optim, kind)(weights, _RATE, eps=_EPSILON, **settings)

    def step() -> None:
        gradients = torch._foreach_mul(sources, _FACTOR)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        optimizer.step()

    return step, lambda: sum(
        float(weight.detach().square().sum(dtype=torch.float64)) for weight in weights
    )


NAMES: dict[str, tuple[str, ...]] = {
    "mirrored": (
        *("SGD", "SGD with momentum", "Adam", "AdamW", "Adam by `update_step`"),
        *("LossScaleOptimizer", "RMSprop", "Nadam", "Adamax", "Adagrad", "Adadelta", "Ftrl"),
        *("Lion", "Lamb", "Adafactor", "ScheduleFreeAdamW", "Muon"),
    ),
    "torch": tuple(
        f"{rule}{form}" for rule in ("Adam", "AdamW") for form in ("", " foreach", " fused")
    ),
}
LIBRARIES: dict[str, Callable[[str, tuple[tuple[int, ...], ...]], Run]] = {
    "mirrored": mirrored,
    "torch": torch,
}


def values(shapes: tuple[tuple[int, ...], ...], seed: int) -> list[Any]:
    """Return the weights, or what gradients are made of, in float32."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


def measured(run: Run, rounds: int, seconds: float) -> dict[str, float]:
    """Return the microseconds of a step, and what the weights are after the first ones."""
    step, size = run
    for _ in range(CHECKED):
        step()
    found = {"weights": size()}
    taken = []
    for _ in range(rounds):
        started, count = time.perf_counter(), 0
        while (spent := time.perf_counter() - started) < seconds or not count:
            step()
            count += 1
        taken.append(spent / count * 1e6)
    return {**found, "us": statistics.median(taken)}


def main() -> None:
    """Print what each optimizer takes."""
    library, size, rounds, seconds, *names = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found = {
        name: measured(LIBRARIES[library](name, SIZES[size]), int(rounds), float(seconds))
        for name in names or NAMES[library]
    }
    print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
