"""Says where replicas have too little to do to be of use.

docs/performance.md derives the number from which on they are.
"""

from weakref import WeakSet

from mirrored._logging import logger
from mirrored.distribute import Strategy
from mirrored.program import THREADS_FROM, Graph

_logged: WeakSet[Strategy] = WeakSet()


def tell_of_small_steps(strategy: Strategy, graph: Graph) -> None:
    """Say once of a strategy that one device would be faster, where a step is that small.

    Real GPUs have numbers of their own, which nobody has measured.

    Args:
        strategy: The strategy whose replicas take the step.
        graph: A step of training.
    """
    replicas = strategy.local_replicas
    if replicas == 1 or strategy in _logged or not strategy.shares_memory:
        return
    if strategy.executor == "threads":  # The user's choice: they do not run one after another.
        return
    work = sum(node.flops for node in graph.nodes) / replicas
    if work < THREADS_FROM:
        _logged.add(strategy)
        logger.debug(
            "A step's matrix products take %s operations on each of %d replicas. Below %s replicas "
            "run one after another here, so that one device would be faster.",
            f"{work:,.0f}",
            replicas,
            f"{THREADS_FROM:,.0f}",
        )
