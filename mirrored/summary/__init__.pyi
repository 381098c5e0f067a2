# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training.summaries import SummaryWriter as SummaryWriter
from mirrored.training.summaries import create_file_writer as create_file_writer
from mirrored.training.summaries import create_noop_writer as create_noop_writer
from mirrored.summary import experimental as experimental
from mirrored.training.summaries import flush as flush
from mirrored.training.summaries import histogram as histogram
from mirrored.training.summaries import record_if as record_if
from mirrored.training.summaries import scalar as scalar
from mirrored.training.summaries import should_record_summaries as should_record_summaries
from mirrored.training.summaries import text as text
