# Written by tests/support/stubs.py from the table in train.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.examples import BytesList as BytesList
from mirrored.training.files.checkpoint import Checkpoint as Checkpoint
from mirrored.training.files.checkpoint import CheckpointManager as CheckpointManager
from mirrored.data.examples import Example as Example
from mirrored.data.examples import Feature as Feature
from mirrored.data.examples import Features as Features
from mirrored.data.examples import FloatList as FloatList
from mirrored.data.examples import Int64List as Int64List
from mirrored.training.preemption import PreemptionHandler as PreemptionHandler
from mirrored.training.files.checkpoint import latest_checkpoint as latest_checkpoint
