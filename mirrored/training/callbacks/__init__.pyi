# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._late import late_module as _late_module
from mirrored.training.callbacks.callback import Callback as Callback
from mirrored.training.callbacks.callback_list import CallbackList as CallbackList
from mirrored.training.callbacks.history import History as History
from mirrored.training.callbacks.callback import Logs as Logs
