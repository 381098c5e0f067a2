"""Keras' names of callbacks, as ``mr.keras.callbacks``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.training.callbacks import Callback as Callback
from mirrored.training.callbacks import CallbackList as CallbackList
from mirrored.training.callbacks import History as History

if _typing.TYPE_CHECKING:
    from mirrored.training.backup_and_restore import BackupAndRestore as BackupAndRestore
    from mirrored.training.callbacks.csv_logger import CSVLogger as CSVLogger
    from mirrored.training.callbacks.early_stopping import EarlyStopping as EarlyStopping
    from mirrored.training.callbacks.lambda_callback import LambdaCallback as LambdaCallback
    from mirrored.training.callbacks.learning_rate_scheduler import (
        LearningRateScheduler as LearningRateScheduler,
    )
    from mirrored.training.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
    from mirrored.training.callbacks.progbar_logger import ProgbarLogger as ProgbarLogger
    from mirrored.training.callbacks.reduce_lr_on_plateau import (
        ReduceLROnPlateau as ReduceLROnPlateau,
    )
    from mirrored.training.callbacks.swap_ema_weights import SwapEMAWeights as SwapEMAWeights
    from mirrored.training.callbacks.tensorboard import TensorBoard as TensorBoard
    from mirrored.training.callbacks.terminate_on_nan import TerminateOnNaN as TerminateOnNaN

_LATE = {
    "mirrored.training.backup_and_restore": "BackupAndRestore",
    "mirrored.training.callbacks.csv_logger": "CSVLogger",
    "mirrored.training.callbacks.early_stopping": "EarlyStopping",
    "mirrored.training.callbacks.lambda_callback": "LambdaCallback",
    "mirrored.training.callbacks.learning_rate_scheduler": "LearningRateScheduler",
    "mirrored.training.callbacks.model_checkpoint": "ModelCheckpoint",
    "mirrored.training.callbacks.progbar_logger": "ProgbarLogger",
    "mirrored.training.callbacks.reduce_lr_on_plateau": "ReduceLROnPlateau",
    "mirrored.training.callbacks.swap_ema_weights": "SwapEMAWeights",
    "mirrored.training.callbacks.tensorboard": "TensorBoard",
    "mirrored.training.callbacks.terminate_on_nan": "TerminateOnNaN",
}
_public_module("tf.keras.callbacks", __name__, _LATE)
