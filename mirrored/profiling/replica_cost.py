"""The picture of what replicas cost: times of steps over the number of replicas."""

import math
from collections.abc import Mapping

from mirrored._arguments import explained
from mirrored._types import Figure


@explained
def plot_replica_cost(times: Mapping[str, Mapping[int, float]]) -> "Figure":
    """Return a figure of the times of steps over the number of replicas, relative to one replica.

    Args:
        times: For each model, by its name: the time of a step by number of replicas, in any unit.
            Each has a time of one replica.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: A model has no time of one replica, or a number that is not positive.

    Example:
        >>> import mirrored as mr
        >>> figure = mr.profiler.plot_replica_cost({"digits": {1: 40.6, 2: 43.1, 8: 110.0}})
        >>> figure.axes[0].get_lines()[0].get_ydata().round(2).tolist()
        [1.0, 1.06, 2.71]
    """
    if not times:
        raise ValueError("Nothing to plot. Received: times={}. Pass times of a model.")
    for name, own in times.items():
        if 1 not in own or not all(
            count > 0 and time > 0 and math.isfinite(time) for count, time in own.items()
        ):
            raise ValueError(
                "Each model needs a time for one replica, and positive numbers. Received: "
                f"times[{name!r}]={dict(own)!r}."
            )
    from mirrored.profiling.figures import draw_replica_cost

    return draw_replica_cost(times)
