"""Keras' names of callbacks, as ``mr.keras.callbacks``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.callbacks",
    __name__,
    {
        "mirrored.training.backup_and_restore": "BackupAndRestore",
        "mirrored.training.callbacks": "Callback CallbackList History",
        "mirrored.training.callbacks.check_replicas": "CheckReplicas",
        "mirrored.training.callbacks.csv_logger": "CSVLogger",
        "mirrored.training.callbacks.lambda_callback": "LambdaCallback",
        "mirrored.training.callbacks.learning_rate_scheduler": "LearningRateScheduler",
        "mirrored.training.callbacks.model_checkpoint": "ModelCheckpoint",
        "mirrored.training.callbacks.monitor_callback": "EarlyStopping ReduceLROnPlateau",
        "mirrored.training.callbacks.progbar_logger": "ProgbarLogger",
        "mirrored.training.callbacks.swap_ema_weights": "SwapEMAWeights",
        "mirrored.training.callbacks.tensorboard": "TensorBoard",
        "mirrored.training.callbacks.terminate_on_nan": "TerminateOnNaN",
        "mirrored.training.callbacks.verify_steps": "VerifySteps",
    },
)
