"""TensorFlow 1's `tf.train`: optimizers, rates that decay, and the count of steps."""

from typing import Any

import numpy as np

from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.listing import list_names
from mirrored.compat.v1.sources import constant
from mirrored.compat.v1.variables import GraphKeys, Variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the variable that counts the steps; None if there is none."""
    steps = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return steps[0] if steps else None


def create_global_step(graph: Graph | None = None) -> Variable:
    """Return a new variable that counts the steps.

    Raises:
        ValueError: There is one.
    """
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    graph = graph or get_default_graph()
    kept = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    with graph.as_default(), graph.name_scope(None):
        start = lambda: constant(np.int64(0), name="zeros")  # noqa: E731
        return Variable(start, trainable=False, collections=kept, name="global_step", dtype="int64")


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable that counts the steps."""
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Return the number of the step that a session is in.

    Args:
        sess: The session.
        global_step_tensor: The variable or tensor that has it.
    """
    return int(sess.run(global_step_tensor))


_NO_FILES = "Graphs are not written: draw it by its program, and restore a `tf.train.Saver`'s file."
list_names(
    __name__,
    {
        "mirrored.compat.v1.averages": "ExponentialMovingAverage",
        "mirrored.compat.v1.coordinator": "Coordinator",
        "mirrored.compat.v1.decays": """
            exponential_decay inverse_time_decay natural_exp_decay piecewise_constant
            polynomial_decay
        """,
        "mirrored.compat.v1.base_optimizer": "Optimizer",
        "mirrored.compat.v1.optimizers": """
            AdagradOptimizer AdamOptimizer GradientDescentOptimizer MomentumOptimizer
            RMSPropOptimizer
        """,
        "mirrored.compat.v1.saver": """
            Saver checkpoint_exists get_checkpoint_state latest_checkpoint list_variables
            load_variable
        """,
    },
    refused={
        _NO_FILES: "export_meta_graph import_meta_graph write_graph",
        "Use `tf.train.list_variables` and `tf.train.load_variable`.": "NewCheckpointReader",
        "Use `tf.summary.FileWriter`.": "SummaryWriter",
        "There are no queues: feed batches, of a `mirrored.data.Dataset` for example.": """
            LooperThread QueueRunner add_queue_runner batch batch_join input_producer limit_epochs
            maybe_batch maybe_shuffle_batch range_input_producer shuffle_batch shuffle_batch_join
            slice_input_producer start_queue_runners string_input_producer
        """,
        "Use `tf.Session`, with a `tf.train.Saver` and a loop of your own.": """
            CheckpointSaverHook MonitoredSession MonitoredTrainingSession Scaffold SessionManager
            SessionRunHook SingularMonitoredSession StopAtStepHook Supervisor
        """,
        "A program is one process, which has all devices of its machine: use `tf.device`.": """
            ClusterSpec Server SyncReplicasOptimizer replica_device_setter
        """,
    },
)
