# Written by tests/support/stubs.py from the table in experimental.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training.event_summaries import get_step as get_step
from mirrored.training.event_summaries import set_step as set_step
