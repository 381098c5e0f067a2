"""What optimizers are made of, as configurations: their settings, and a rate or a schedule."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from mirrored._arguments import explained
from mirrored.serialization.configured import arguments_of
from mirrored.variables import Variable

# The settings that all optimizers have, in Keras' order.
_SHARED = (
    *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum"),
    *("ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps"),
)


@explained
class ConfiguredOptimizer:
    """An optimizer that can be made again; `Optimizer` says what the arguments are."""

    _configured: ClassVar[tuple[str, ...]] = ("learning_rate",)  # May be configurations themselves.

    name: str
    _learning_rate: Any

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an optimizer like it, by name, as plain values.

        A subclass adds its own to those of `super().get_config()`.

        Raises:
            ValueError: The learning rate is a lambda.

        Example:
            >>> import mirrored as mr
            >>> mr.optim.SGD(0.5, momentum=0.25).get_config()["momentum"]
            0.25
        """
        from mirrored.serialization.writing import serialize_keras_object  # Few programs need it.

        rate = self._learning_rate
        if isinstance(rate, Variable):
            rate = float(rate.numpy())
        settings = {name: serialize_keras_object(getattr(self, name)) for name in _SHARED}
        return {
            "name": self.name,
            "learning_rate": serialize_keras_object(rate),
            **settings,
            **arguments_of(self, without=("name", "learning_rate", *_SHARED)),
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return an optimizer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.

        Raises:
            TypeError: The class does not take these arguments.

        Example:
            >>> import mirrored as mr
            >>> config = mr.optim.SGD(0.5).get_config()
            >>> float(mr.optim.SGD.from_config(config).learning_rate)
            0.5
        """
        return cls(**read(config, cls._configured, custom_objects))


def read(
    config: Mapping[str, Any], names: tuple[str, ...], custom_objects: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments of a configuration, with what some of them describe.

    Args:
        config: The configuration.
        names: Those that may be configurations themselves.
        custom_objects: Classes and functions that these may name.
    """
    from mirrored.serialization.reading import deserialize_keras_object  # Few programs need it.

    taken = dict(config)
    for name in names:
        if isinstance(taken.get(name), dict):
            taken[name] = deserialize_keras_object(taken[name], custom_objects=custom_objects)
    return taken
