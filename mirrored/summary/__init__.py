"""The public names of summaries for TensorBoard, as ``mr.summary``.

Its names are defined in other modules.
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
