# Written by tests/support/stubs.py from the table in profiler.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.profiling.memory import plot_memory as plot_memory
from mirrored.profiling.replica_cost import plot_replica_cost as plot_replica_cost
from mirrored.profiling.timeline import plot_timeline as plot_timeline
from mirrored.profiling.step_trace import summary as summary
from mirrored.profiling.step_trace import trace as trace
