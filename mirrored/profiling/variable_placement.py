"""The picture of where a model's variables are."""

from collections import Counter, defaultdict

from mirrored._arguments import explained
from mirrored._types import Figure
from mirrored.devices import Device
from mirrored.devices.logical_device import in_order
from mirrored.distribute.variable_memory import bytes_by_device
from mirrored.training.model import Model

_MOST = 6  # More layers cannot be told apart.


@explained
def plot_placement(model: Model) -> "Figure":
    """Return a figure of the devices that a model's variables are on.

    Each device has a bar: the bytes of the layers' weights and of the optimizer's variables, with
    the device's limit as a line.

    Args:
        model: A model that is built.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: The model has no variables yet.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2, memory_limit=16)
        >>> with mr.MirroredStrategy().scope():
        ...     model = mr.Sequential([mr.layers.Dense(512), mr.layers.Dense(10)])
        ...     model.build((None, 1024))
        >>> figure = mr.debugging.plot_placement(model)
        >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
        ['GPU:0', 'GPU:1']
    """
    from mirrored.profiling.figures import draw_placement

    parts = bytes_by_part(model)
    if not parts:
        raise ValueError(
            f"The model {model.name!r} has no variables yet. Call `build` or `fit` first."
        )
    return draw_placement(parts)


def bytes_by_part(model: Model) -> dict[Device, dict[str, int]]:
    """Return the bytes on each device, by layer and for the optimizer.

    Args:
        model: The model.
    """
    parts = [(layer.name, bytes_by_device(layer.variables)) for layer in model.layers]
    parts.sort(key=lambda part: -part[1].total())
    largest, others = parts[:_MOST], parts[_MOST:]
    named: defaultdict[str, Counter[Device]] = defaultdict(Counter)
    for name, total in largest:  # Layers of a subclass may share a name.
        named[name] += total
    named["other layers"] += sum((total for _, total in others), start=Counter())
    named["optimizer"] += bytes_by_device(getattr(model.optimizer, "variables", ()))
    devices = in_order({device for total in named.values() for device in total})
    return {
        device: {name: total[device] for name, total in named.items() if total[device]}
        for device in devices
    }
