"""Several optimizers as one: each variable has one of them."""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, Self

from mirrored._arguments import explained
from mirrored.optim.loss_scale_optimizer import LossScaleOptimizer
from mirrored.optim.optimizer import Optimizer, read_config
from mirrored.optim.wrapping import Wrapping
from mirrored.serialization.constructor_arguments import arguments_of
from mirrored.variables import Variable


@explained
class OptimizerMap(MutableMapping[str, Optimizer]):
    """Which optimizer variables have, by their names.

    A name is looked for among the keys, then among what these match whole as regular expressions.
    A variable's name is that of its layer and its own, as in "dense/kernel".

    Args:
        default_optimizer: The optimizer of variables without a key.
        optimizer_map: Optimizers by key; None: no keys yet.

    Raises:
        TypeError: The first is no optimizer, or the second no dict.

    Example:
        >>> import mirrored as mr
        >>> by_name = mr.optim.OptimizerMap(mr.optim.SGD(), {"encoder/.*": mr.optim.Adam()})
        >>> by_name["encoder/kernel"].name, by_name["decoder/kernel"].name
        ('adam', 'sgd')
    """

    def __init__(
        self, default_optimizer: Optimizer, optimizer_map: dict[str, Optimizer] | None = None
    ) -> None:
        if not isinstance(default_optimizer, Optimizer):
            raise TypeError(
                f"default_optimizer must be an Optimizer instance. Received: {default_optimizer!r}"
            )
        if optimizer_map is not None and not isinstance(optimizer_map, dict):
            raise TypeError(f"optimizer_map must be a dictionary. Received: {optimizer_map!r}")
        self._default_optimizer = default_optimizer
        self.optimizer_map = optimizer_map or {}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name, as plain values."""
        return arguments_of(self)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return one that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.
        """
        return cls(**read_config(config, ("default_optimizer", "optimizer_map"), custom_objects))

    @property
    def default_optimizer(self) -> Optimizer:
        """The optimizer of variables without a key."""
        return self._default_optimizer

    def __getitem__(self, key: str) -> Optimizer:
        """Return the optimizer of a name."""
        if key in self.optimizer_map:
            return self.optimizer_map[key]
        matches = [pattern for pattern in self.optimizer_map if re.fullmatch(pattern, key)]
        if len(matches) > 1:
            raise ValueError(
                f"Multiple optimizers assigned to variable {key}. Received: the keys {matches}, "
                "which all match it."
            )
        return self.optimizer_map[matches[0]] if matches else self._default_optimizer

    def __setitem__(self, key: str, optimizer: Optimizer) -> None:
        """Give what a key matches an optimizer."""
        if key in self.optimizer_map:
            raise ValueError(
                f"'{key}' already exists in the OptimizerMap with value "
                f"{self.optimizer_map[key]}. Please make sure to not use duplicated keys."
            )
        if not isinstance(key, str):
            raise ValueError(f"key must be a string. Received: {key!r}")
        _check_optimizer(optimizer, "optimizer")
        self.optimizer_map[key] = optimizer

    def __delitem__(self, key: str) -> None:
        """Take a key out."""
        del self.optimizer_map[key]

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.optimizer_map)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self.optimizer_map)

    def __call__(self, variable: Variable) -> Optimizer:
        """Return the optimizer of a variable."""
        return self[variable.name.removesuffix(":0")]


@explained
class MultiOptimizer(Wrapping):
    """Has each variable updated by one of several optimizers, all of them in one step.

    `learning_rate` is that of each of `optimizers`, and there is none of all together.

    Args:
        optimizer_map: An `OptimizerMap`; or a function, which is given a variable and returns its
            optimizer, once for each variable.
        loss_scale_factor: That of all of them, whatever they were made with; see `Optimizer`.
        name: What messages call it; None: the class's name in snake case.

    Raises:
        TypeError: `optimizer_map` cannot be called.
        ValueError: One of them is itself around others, or made in another strategy's scope.

    Example:
        >>> import mirrored as mr
        >>> kernel, bias = mr.Variable(1.0, name="kernel"), mr.Variable(1.0, name="bias")
        >>> slow, fast = mr.optim.SGD(0.25), mr.optim.SGD(0.5)
        >>> optimizer = mr.optim.MultiOptimizer(mr.optim.OptimizerMap(slow, {"bias": fast}))
        >>> _ = optimizer.apply_gradients([(mr.constant(1.0), v) for v in (kernel, bias)])
        >>> float(kernel), float(bias)
        (0.75, 0.5)
    """

    _configured = ("optimizer_map",)
    _arguments = ("optimizer_map", "loss_scale_factor", "name")

    def __init__(
        self,
        optimizer_map: OptimizerMap | Callable[[Variable], Optimizer],
        loss_scale_factor: float | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(optimizer_map):
            raise TypeError(
                "`optimizer_map` is an OptimizerMap, or a function that returns the optimizer of a "
                f"variable. Received: {optimizer_map!r}"
            )
        self._inner = []
        self._chosen: dict[int, tuple[Variable, Optimizer]] = {}
        super().__init__(0.0, loss_scale_factor=loss_scale_factor, name=name)
        self.optimizer_map = optimizer_map
        if isinstance(optimizer_map, OptimizerMap):
            for optimizer in (*optimizer_map.values(), optimizer_map.default_optimizer):
                self._take(optimizer)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_chosen": list(self._chosen.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._chosen = {id(variable): (variable, chosen) for variable, chosen in state["_chosen"]}

    def _take(self, optimizer: Any) -> None:
        """Have an optimizer inside, once."""
        if not any(optimizer is inner for inner in self._inner):
            _check_optimizer(optimizer, "An optimizer of a MultiOptimizer")
            self._wrap(optimizer)
            optimizer.loss_scale_factor = self.loss_scale_factor

    def _inner_of(self, variable: Variable) -> Optimizer:
        if id(variable) not in self._chosen:
            optimizer = self.optimizer_map(variable)
            self._take(optimizer)
            self._chosen[id(variable)] = (variable, optimizer)
        return self._chosen[id(variable)][1]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers inside."""
        return list(self._inner)

    @property
    def loss_scale_factor(self) -> float | None:
        """What losses are multiplied by; all optimizers inside have it."""
        return self._loss_scale_factor

    @loss_scale_factor.setter
    def loss_scale_factor(self, value: float | None) -> None:
        self._loss_scale_factor = value
        for inner in self._inner:
            inner.loss_scale_factor = value

    @property
    def learning_rate(self) -> NoReturn:
        """There is none: each of `optimizers` has its own."""
        raise AttributeError(
            "Learning rate cannot be accessed on a MultiOptimizer. Access the learning rate on the "
            "individual sub-optimizers instead."
        )

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        raise AttributeError(
            "Learning rate cannot be set on a MultiOptimizer. Set the learning rate on the "
            "individual sub-optimizers instead."
        )


def _check_optimizer(optimizer: Any, role: str) -> None:
    """Refuse what cannot be one of several optimizers, as Keras does."""
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"{role} must be an Optimizer instance. Received: {optimizer!r}")
    if isinstance(optimizer, LossScaleOptimizer | MultiOptimizer):
        raise ValueError(f"{role} cannot be {type(optimizer).__name__}. Received: {optimizer!r}")
