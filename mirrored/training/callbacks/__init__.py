"""Callbacks: what happens at points of training, evaluation and prediction. One a file.

Here is what every `fit` has; `mirrored.keras.callbacks` has them all.
"""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.training.callbacks.callback": "Callback Logs",
        "mirrored.training.callbacks.callback_list": "CallbackList",
        "mirrored.training.callbacks.history": "History",
    },
)
