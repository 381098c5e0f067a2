"""TensorFlow 1's `tf.train`: optimizers, rates that decay, and the count of steps."""

from typing import Any

import numpy as np

from mirrored.compat.v1.averages import ExponentialMovingAverage as ExponentialMovingAverage
from mirrored.compat.v1.coordinator import Coordinator as Coordinator
from mirrored.compat.v1.decays import exponential_decay as exponential_decay
from mirrored.compat.v1.decays import inverse_time_decay as inverse_time_decay
from mirrored.compat.v1.decays import natural_exp_decay as natural_exp_decay
from mirrored.compat.v1.decays import piecewise_constant as piecewise_constant
from mirrored.compat.v1.decays import polynomial_decay as polynomial_decay
from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.optimizer import Optimizer as Optimizer
from mirrored.compat.v1.optimizers import AdagradOptimizer as AdagradOptimizer
from mirrored.compat.v1.optimizers import AdamOptimizer as AdamOptimizer
from mirrored.compat.v1.optimizers import GradientDescentOptimizer as GradientDescentOptimizer
from mirrored.compat.v1.optimizers import MomentumOptimizer as MomentumOptimizer
from mirrored.compat.v1.optimizers import RMSPropOptimizer as RMSPropOptimizer
from mirrored.compat.v1.saver import Saver as Saver
from mirrored.compat.v1.saver import checkpoint_exists as checkpoint_exists
from mirrored.compat.v1.saver import get_checkpoint_state as get_checkpoint_state
from mirrored.compat.v1.saver import latest_checkpoint as latest_checkpoint
from mirrored.compat.v1.saver import list_variables as list_variables
from mirrored.compat.v1.saver import load_variable as load_variable
from mirrored.compat.v1.sources import constant
from mirrored.compat.v1.variables import GraphKeys, Variable


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the variable that counts the steps; None: there is none."""
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


_QUEUES = "There are no queues: feed batches, of a `mirrored.data.Dataset` for example."
_SESSIONS = "Use `tf.Session`, with a `tf.train.Saver` and a loop of your own."
_PROCESSES = "A program is one process, which has all devices of its machine: use `tf.device`."
_GRAPHS = "Graphs are not written: draw it by its program, and restore a `tf.train.Saver`'s file."
# What is refused, by the names of TensorFlow 1's, with what to do instead.
_REFUSED = {
    **dict.fromkeys(("import_meta_graph", "export_meta_graph", "write_graph"), _GRAPHS),
    "NewCheckpointReader": "Use `tf.train.list_variables` and `tf.train.load_variable`.",
    "SummaryWriter": "Use `tf.summary.FileWriter`.",
    **dict.fromkeys(
        [
            "QueueRunner",
            "add_queue_runner",
            "start_queue_runners",
            "batch",
            "batch_join",
            "shuffle_batch",
            "shuffle_batch_join",
            "maybe_batch",
            "maybe_shuffle_batch",
            "input_producer",
            "range_input_producer",
            "slice_input_producer",
            "string_input_producer",
            "limit_epochs",
            "LooperThread",
        ],
        _QUEUES,
    ),
    **dict.fromkeys(
        [
            "MonitoredSession",
            "MonitoredTrainingSession",
            "SingularMonitoredSession",
            "Supervisor",
            "SessionManager",
            "Scaffold",
            "SessionRunHook",
            "StopAtStepHook",
            "CheckpointSaverHook",
        ],
        _SESSIONS,
    ),
    **dict.fromkeys(
        ["ClusterSpec", "Server", "replica_device_setter", "SyncReplicasOptimizer"], _PROCESSES
    ),
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise AttributeError(f"{__name__} has no {name!r}. {_REFUSED[name]}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. docs/from-tensorflow-1.md lists what is "
        "there."
    )
