# Written by tests/support/stubs.py from the table in train.py; do not edit it.
from typing import Any
import numpy as np
from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.listing import list_names
from mirrored.compat.v1.sources import constant
from mirrored.compat.v1.variables import GraphKeys, Variable
def get_global_step(graph: Graph | None=None) -> Variable | None:
    """Return the variable that counts the steps; None if there is none."""
    steps = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return steps[0] if steps else None
def create_global_step(graph: Graph | None=None) -> Variable:
    """Return a new variable that counts the steps.

    Raises:
        ValueError: There is one.
    """
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    graph = graph or get_default_graph()
    kept = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
    with graph.as_default(), graph.name_scope(None):
        start = lambda: constant(np.int64(0), name='zeros')
        return Variable(start, trainable=False, collections=kept, name='global_step', dtype='int64')
def get_or_create_global_step(graph: Graph | None=None) -> Variable:
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
from mirrored.compat.v1.optimizers import AdagradOptimizer as AdagradOptimizer
from mirrored.compat.v1.optimizers import AdamOptimizer as AdamOptimizer
from mirrored.compat.v1.coordinator import Coordinator as Coordinator
from mirrored.compat.v1.averages import ExponentialMovingAverage as ExponentialMovingAverage
from mirrored.compat.v1.optimizers import GradientDescentOptimizer as GradientDescentOptimizer
from mirrored.compat.v1.optimizers import MomentumOptimizer as MomentumOptimizer
from mirrored.compat.v1.base_optimizer import Optimizer as Optimizer
from mirrored.compat.v1.optimizers import RMSPropOptimizer as RMSPropOptimizer
from mirrored.compat.v1.saver import Saver as Saver
from mirrored.compat.v1.saver import checkpoint_exists as checkpoint_exists
from mirrored.compat.v1.decays import exponential_decay as exponential_decay
from mirrored.compat.v1.saver import get_checkpoint_state as get_checkpoint_state
from mirrored.compat.v1.decays import inverse_time_decay as inverse_time_decay
from mirrored.compat.v1.saver import latest_checkpoint as latest_checkpoint
from mirrored.compat.v1.saver import list_variables as list_variables
from mirrored.compat.v1.saver import load_variable as load_variable
from mirrored.compat.v1.decays import natural_exp_decay as natural_exp_decay
from mirrored.compat.v1.decays import piecewise_constant as piecewise_constant
from mirrored.compat.v1.decays import polynomial_decay as polynomial_decay
