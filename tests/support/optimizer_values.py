"""Steps of optimizers, for any `keras`: what two variables are after them.

What optimizer_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0, in float64. Where these are
installed, `python tests/support/optimizer_values.py` writes it anew.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

try:
    from tests.support import user_optimizers
except ImportError:  # As a script it has its own folder alone.
    import user_optimizers  # type: ignore[import-not-found,no-redef]

FILE = Path(__file__).with_suffix(".json")
_draws = np.random.default_rng(0)
SHAPES = ((3, 2), (4,))
NAMES = ("kernel", "bias")
START = [_draws.normal(size=shape).round(3) for shape in SHAPES]
# A column without a gradient, and sizes from hundredths to tens.
GRADIENTS = [
    [(_draws.normal(size=shape) * 4.0 ** _draws.integers(-2, 3)).round(3) for shape in SHAPES]
    for _ in range(5)
]
for _gradient, _ in GRADIENTS:
    _gradient[1] = 0.0

_ALL: dict[str, list[dict[str, Any]]] = {
    "AdamW": [{}, {"weight_decay": 0.1, "amsgrad": True}],
    "Adadelta": [{}, {"rho": 0.5, "epsilon": 1e-2}],
    "Adafactor": [
        {},
        {"learning_rate": 0.9},
        {"learning_rate": 0.9, "relative_step": False, "epsilon_2": 0.5},
        {"beta_2_decay": -0.5, "clip_threshold": 0.25, "epsilon_1": 1e-3},
    ],
    "Adagrad": [{}, {"initial_accumulator_value": 0.0, "epsilon": 1e-2}],
    "Adamax": [{}, {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-2}],
    "Ftrl": [
        {},
        {"learning_rate_power": -0.75, "initial_accumulator_value": 0.5, "beta": 0.5},
        {"l1_regularization_strength": 0.5, "l2_regularization_strength": 0.25},
        {"l2_shrinkage_regularization_strength": 0.1},
        {"learning_rate_power": 0.0},
    ],
    "Lamb": [{}, {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-2}],
    "Lion": [{}, {"beta_1": 0.5, "beta_2": 0.25}],
    "Muon": [
        {},
        {"ns_steps": 3, "nesterov": False, "rms_rate": None, "weight_decay": None},
        {"exclude_layers": ["ker"], "adam_lr_ratio": 0.5, "momentum": 0.5},
        {"muon_a": 3.0, "muon_b": -4.0, "muon_c": 2.0, "adam_weight_decay": None},
    ],
    "ScheduleFreeAdamW": [
        {},
        {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-2, "warmup_steps": 3, "weight_decay": 0.1},
    ],
    "Nadam": [{}, {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-2}],
    "RMSprop": [
        {},
        {"rho": 0.5, "momentum": 0.9},
        {"centered": True, "epsilon": 1e-2},
        {"rho": 0.5, "momentum": 0.9, "centered": True, "epsilon": 1e-2},
    ],
}
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ExponentialDecay", {"decay_steps": 2, "decay_rate": 0.5}),
    ("ExponentialDecay", {"decay_steps": 2, "decay_rate": 0.5, "staircase": True}),
    ("InverseTimeDecay", {"decay_steps": 2, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"decay_steps": 2, "decay_rate": 0.5, "staircase": True}),
    ("PolynomialDecay", {"decay_steps": 3}),
    ("PolynomialDecay", {"decay_steps": 3, "end_learning_rate": 0.01, "power": 2.0}),
    ("PolynomialDecay", {"decay_steps": 2, "cycle": True}),
    ("CosineDecay", {"decay_steps": 3}),
    ("CosineDecay", {"decay_steps": 2, "alpha": 0.25, "warmup_target": 0.5, "warmup_steps": 2}),
    ("CosineDecay", {"decay_steps": 2, "warmup_target": 0.5}),
    ("CosineDecayRestarts", {"first_decay_steps": 1.5, "t_mul": 1.0, "m_mul": 0.5}),
    ("CosineDecayRestarts", {"first_decay_steps": 1.5, "alpha": 0.25, "m_mul": 0.5}),
    ("PiecewiseConstantDecay", {"boundaries": [1, 3], "values": [0.5, 0.25, 0.125]}),
    ("PiecewiseConstantDecay", {"boundaries": [0], "values": [0.5, 0.25]}),
]
# What they all share, each with a rule that has its own ways of keeping things.
_SHARED: list[tuple[str, dict[str, Any]]] = [
    ("RMSprop", {"weight_decay": 0.1}),
    ("Nadam", {"clipnorm": 0.5, "use_ema": True, "ema_momentum": 0.75}),
    ("SGD", {"momentum": 0.9, "gradient_accumulation_steps": 2}),
    ("SGD", {"gradient_accumulation_steps": 3, "clipvalue": 0.25}),
    ("Adam", {"gradient_accumulation_steps": 2, "weight_decay": 0.1, "global_clipnorm": 0.5}),
    ("Nadam", {"gradient_accumulation_steps": 2}),
    ("Adafactor", {"gradient_accumulation_steps": 2, "clipnorm": 1.0}),
    (
        "Adam",
        {
            "gradient_accumulation_steps": 2,
            "use_ema": True,
            "ema_momentum": 0.5,
            "ema_overwrite_frequency": 2,
        },
    ),
    ("SGD", {"loss_scale_factor": 8.0, "clipnorm": 0.5}),
    ("SGD", {"weight_decay": 0.5, "excluded": {"var_names": ["bi.s"]}}),
    ("AdamW", {"weight_decay": 0.5, "excluded": {"var_list": [0]}}),
    ("SGD", {"constraints": {"kernel": ("MaxNorm", {"max_value": 0.5})}}),
    ("SGD", {"constraints": {"kernel": ("UnitNorm", {"axis": 1}), "bias": ("NonNeg", {})}}),
    (
        "Adam",
        {
            "weight_decay": 0.1,
            "constraints": {
                "kernel": ("MinMaxNorm", {"min_value": 0.5, "rate": 0.25, "axis": [0, 1]})
            },
        },
    ),
    (
        "Adam",
        {
            "use_ema": True,
            "ema_momentum": 0.5,
            "ema_overwrite_frequency": 2,
            "constraints": {"kernel": ("MaxNorm", {"max_value": 1.0}), "bias": ("NonNeg", {})},
        },
    ),
    (
        "SGD",
        {
            "gradient_accumulation_steps": 3,
            "constraints": {"kernel": ("MinMaxNorm", {"max_value": 0.25, "rate": 0.5})},
        },
    ),
    ("Adafactor", {"constraints": {"kernel": ("MaxNorm", {"max_value": 0.5})}}),
    # Scaled losses: the factor grows, and steps are left out.
    ("Adam", {"scaled": {}, "infinite": (1, 2)}),
    ("SGD", {"momentum": 0.9, "scaled": {"initial_scale": 4.0, "dynamic_growth_steps": 2}}),
    (
        "SGD",
        {
            "scaled": {"initial_scale": 4.0, "dynamic_growth_steps": 1},
            "infinite": (2,),
            "gradient_accumulation_steps": 2,
        },
    ),
    (
        "RMSprop",
        {
            "scaled": {"initial_scale": 0.5},
            "infinite": (0, 3),
            "use_ema": True,
            "ema_momentum": 0.5,
            "ema_overwrite_frequency": 2,
            "constraints": {"kernel": ("MaxNorm", {"max_value": 1.0})},
            "clipnorm": 0.5,
        },
    ),
    # Several in one.
    ("SGD", {"momentum": 0.9, "others": {"bi.s": ("Adam", {"amsgrad": True})}}),
    (
        "RMSprop",
        {
            "momentum": 0.5,
            "centered": True,
            "use_ema": True,
            "others": {"kernel": ("Nadam", {"weight_decay": 0.1})},
            "loss_scale_factor": 4.0,
        },
    ),
    ("SGD", {"others": {"kernel": ("Lion", {})}, "scaled": {}, "infinite": (1,)}),
    # Those of users.
    ("Momentum", {"weight_decay": 0.1, "clipnorm": 0.5}),
    ("Momentum", {"gradient_accumulation_steps": 2, "use_ema": True, "ema_momentum": 0.5}),
    ("Momentum", {"constraints": {"kernel": ("MaxNorm", {"max_value": 0.5})}}),
    ("Momentum", {"schedule": SCHEDULES[0], "scaled": {}, "infinite": (1, 3)}),
    ("Momentum", {"others": {"bias": ("Adam", {})}}),
    ("Means", {}),
    ("Means", {"ema_overwrite_frequency": 2, "use_ema": True, "loss_scale_factor": 4.0}),
    ("Means", {"gradient_accumulation_steps": 2, "scaled": {}}),
    ("Doubled", {"amsgrad": True}),
    ("Doubled", {"gradient_accumulation_steps": 3, "weight_decay": 0.1}),
]


def _cases() -> dict[str, tuple[str, dict[str, Any]]]:
    own = [(kind, settings) for kind, each in _ALL.items() for settings in each]
    found = {f"{kind} {settings}": (kind, settings) for kind, settings in (*own, *_SHARED)}
    for kind, arguments in SCHEDULES:
        found[f"SGD {kind} {arguments}"] = ("SGD", {"schedule": (kind, arguments)})
    found["SGD accumulates"] = (
        "SGD",
        {"schedule": SCHEDULES[0], "gradient_accumulation_steps": 2},
    )
    return found


CASES = _cases()


def schedule(keras: Any, kind: str, arguments: dict[str, Any]) -> Any:
    """Return a schedule that begins with 0.1."""
    made = getattr(keras.optimizers.schedules, kind)
    return made(**arguments) if "values" in arguments else made(0.1, **arguments)


def make(keras: Any, name: str, variables: list[Any]) -> Any:
    """Return the optimizer of a case."""
    kind, settings = CASES[name]
    settings = dict(settings)
    for each in ("constraints", "infinite"):
        settings.pop(each, None)
    excluded, scaled = settings.pop("excluded", None), settings.pop("scaled", None)
    others = settings.pop("others", None)
    rate = settings.pop("learning_rate", 0.1)
    if "schedule" in settings:
        rate = schedule(keras, *settings.pop("schedule"))
    classes = user_optimizers.made_with(keras)
    optimizer = (classes.get(kind) or getattr(keras.optimizers, kind))(rate, **settings)
    if excluded is not None:
        places = excluded.get("var_list", [])
        listed = [variables[i] for i in places] or None
        optimizer.exclude_from_weight_decay(listed, excluded.get("var_names"))
    if others is not None:
        made = {
            key: getattr(keras.optimizers, kind)(0.1, **each)
            for key, (kind, each) in others.items()
        }
        found = keras.optimizers.OptimizerMap(optimizer, made)
        optimizer = keras.optimizers.MultiOptimizer(found, settings.get("loss_scale_factor"))
    return optimizer if scaled is None else keras.optimizers.LossScaleOptimizer(optimizer, **scaled)


def gradients_of(name: str) -> list[list[Any]]:
    """Return the gradients of a case's steps, of which some are not finite."""
    infinite = CASES[name][1].get("infinite", ())
    return [
        [each + (np.inf if step in infinite else 0.0) for each in gradients]
        for step, gradients in enumerate(GRADIENTS)
    ]


def found_after(optimizer: Any, variables: list[Any]) -> list[Any]:
    """Return the variables' values in nested lists, and the sum of each of the optimizer's."""
    sums = [float(np.sum(np.array(each))) for each in optimizer.variables]
    return [*[np.array(each).tolist() for each in variables], sums]


def make_variables(keras: Any, name: str, variable: Callable[[Any, str, Any], Any]) -> list[Any]:
    """Return the variables of a case, with their constraints."""
    constraints = CASES[name][1].get("constraints", {})
    found = []
    for value, each in zip(START, NAMES, strict=True):
        kind, arguments = constraints.get(each, (None, {}))
        constraint = None if kind is None else getattr(keras.constraints, kind)(**arguments)
        found.append(variable(value, each, constraint))
    return found


def after_steps(
    keras: Any, name: str, variable: Callable[[Any, str, Any], Any], array: Callable[[Any], Any]
) -> list[Any]:
    """Return what `found_after` finds after the steps of a case.

    Args:
        keras: The library.
        name: The case.
        variable: Makes a variable of a value, a name and a constraint.
        array: Makes a gradient of an array.
    """
    variables = make_variables(keras, name, variable)
    optimizer = make(keras, name, variables)
    for gradients in gradients_of(name):
        pairs = zip([array(g) for g in gradients], variables, strict=True)
        optimizer.apply_gradients(pairs)
    return found_after(optimizer, variables)


def _write() -> None:
    import keras

    keras.backend.set_floatx("float64")

    def variable(value: Any, name: str, constraint: Any) -> Any:
        made = keras.Variable(value, name=name)
        made.constraint = constraint
        return made

    found = {
        name: after_steps(
            keras,
            name,
            variable,
            lambda gradient: keras.ops.convert_to_tensor(gradient),
        )
        for name in CASES
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    _write()
