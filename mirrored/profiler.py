"""Where time and memory go: traces, and pictures of steps.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.profiler",
    __name__,
    {
        "mirrored.profiling.memory": "plot_memory",
        "mirrored.profiling.replica_cost": "plot_replica_cost",
        "mirrored.profiling.step_trace": "summary trace",
        "mirrored.profiling.timeline": "plot_timeline",
    },
)
