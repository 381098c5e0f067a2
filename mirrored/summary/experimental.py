"""The public names of the steps of summaries, as ``mr.summary.experimental``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.training.summaries.values import get_step as get_step
from mirrored.training.summaries.values import set_step as set_step

_public_module("tf.summary.experimental", __name__)
