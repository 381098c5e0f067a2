# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training.event_summaries import SummaryWriter as SummaryWriter
from mirrored.training.event_summaries import create_file_writer as create_file_writer
from mirrored.training.event_summaries import create_noop_writer as create_noop_writer
from mirrored.summary import experimental as experimental
from mirrored.training.event_summaries import flush as flush
from mirrored.training.event_summaries import histogram as histogram
from mirrored.training.event_summaries import record_if as record_if
from mirrored.training.event_summaries import scalar as scalar
from mirrored.training.event_summaries import should_record_summaries as should_record_summaries
from mirrored.training.event_summaries import text as text
