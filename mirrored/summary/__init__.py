"""The public names of summaries for TensorBoard, as ``mr.summary``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.summary",
    __name__,
    {
        "mirrored.summary": "experimental",
        "mirrored.training.event_summaries": """
            SummaryWriter create_file_writer create_noop_writer flush histogram record_if
            scalar should_record_summaries text
        """,
    },
)
_public_module(
    "tf.summary.experimental",
    f"{__name__}.experimental",
    {
        "mirrored.training.event_summaries": "get_step set_step",
    },
    about="The public names of the steps of summaries, as ``mr.summary.experimental``.",
)
