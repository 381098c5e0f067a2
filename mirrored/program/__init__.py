"""Recorded functions: Python runs once, then a flat list of kernel calls is replayed.

A recorder makes a graph, which is scheduled, given memory, and bound to arrays as a program.
"""

from mirrored._late import late_module as _late_module
from mirrored.program.function import function as function

_late_module(
    __name__,
    {
        "mirrored.program.function_arguments": """
            register_in_force register_per_replica register_variable
        """,
        "mirrored.program.buffers": "Arenas",
        "mirrored.program.executor": "THREADS_FROM make_program",
        "mirrored.program.function": "Function functions_run_eagerly run_functions_eagerly",
        "mirrored.program.dataflow": "Graph",
        "mirrored.program.iterator": "PeekingIterator",
        "mirrored.program.program": "Program",
        "mirrored.program.recorder": "GraphRecorder",
        "mirrored.program.replay": "Feeder GuardFailed Report",
        "mirrored.program.thread_pool": "ThreadPool",
        "mirrored.program.trace_cache": "Trace TraceCache",
        "mirrored.program.function_tracing": "trace",
    },
)
