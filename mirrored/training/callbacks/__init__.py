"""Callbacks: what happens at points of training, evaluation and prediction. One a file.

Here is what every `fit` has; `mirrored.keras.callbacks` has them all.
"""

from mirrored.training.callbacks.callback import Callback as Callback
from mirrored.training.callbacks.callback import Logs as Logs
from mirrored.training.callbacks.callback_list import CallbackList as CallbackList
from mirrored.training.callbacks.history import History as History
