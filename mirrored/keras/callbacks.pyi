# Written by tests/support/stubs.py from the table in callbacks.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training.backup_and_restore import BackupAndRestore as BackupAndRestore
from mirrored.training.callbacks.csv_logger import CSVLogger as CSVLogger
from mirrored.training.callbacks import Callback as Callback
from mirrored.training.callbacks import CallbackList as CallbackList
from mirrored.training.callbacks.check_replicas import CheckReplicas as CheckReplicas
from mirrored.training.callbacks.monitor_callback import EarlyStopping as EarlyStopping
from mirrored.training.callbacks import History as History
from mirrored.training.callbacks.lambda_callback import LambdaCallback as LambdaCallback
from mirrored.training.callbacks.learning_rate_scheduler import LearningRateScheduler as LearningRateScheduler
from mirrored.training.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
from mirrored.training.callbacks.progbar_logger import ProgbarLogger as ProgbarLogger
from mirrored.training.callbacks.monitor_callback import ReduceLROnPlateau as ReduceLROnPlateau
from mirrored.training.callbacks.swap_ema_weights import SwapEMAWeights as SwapEMAWeights
from mirrored.training.callbacks.tensorboard import TensorBoard as TensorBoard
from mirrored.training.callbacks.terminate_on_nan import TerminateOnNaN as TerminateOnNaN
from mirrored.training.callbacks.verify_steps import VerifySteps as VerifySteps
