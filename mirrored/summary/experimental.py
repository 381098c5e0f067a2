"""The public names of the steps of summaries, as ``mr.summary.experimental``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.summary.experimental",
    __name__,
    {
        "mirrored.training.event_summaries": "get_step set_step",
    },
)
