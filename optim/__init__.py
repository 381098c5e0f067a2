"""Optimizers: how gradients change weights. Rules by family; `get` finds one by its name."""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.optimizers",
    __name__,
    {
        "mirrored.optim": "schedules",
        "mirrored.optim.adagrad": "Adadelta Adafactor Adagrad Ftrl RMSprop",
        "mirrored.optim.adam": "Adam AdamW Adamax Lamb Lion Nadam ScheduleFreeAdamW",
        "mirrored.optim.muon": "Muon",
        "mirrored.optim.optimizer": "Optimizer",
        "mirrored.optim.optimizer_registry": "deserialize get serialize",
        "mirrored.optim.sgd": "SGD",
        "mirrored.optim.wrapping": "LossScaleOptimizer MultiOptimizer OptimizerMap",
    },
)
