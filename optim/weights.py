"""An optimizer's variables as a list of values, in Keras' order."""

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from mirrored.variables import Variable


class OptimizerWeights:
    """Gives and takes the values of `variables`."""

    @property
    def variables(self) -> list[Variable]:
        """What has them."""
        raise NotImplementedError

    @property
    def built(self) -> bool:
        """Whether all of them are there."""
        raise NotImplementedError

    def set_weights(self, weights: Iterable[Any]) -> None:
        """Give `variables` values, one after the other; all of them or none.

        Args:
            weights: Arrays or tensors of their shapes. What is behind the last one stays as it is.

        Raises:
            ValueError: The optimizer was not told of variables yet, or a shape is another one.

        Example:
            >>> import mirrored as mr
            >>> optimizer = mr.optim.SGD(0.5, momentum=0.9)
            >>> optimizer.build([mr.Variable([1.0, 2.0])])
            >>> optimizer.set_weights([3, 0.25, [1.0, 1.0]])
            >>> int(optimizer.iterations), float(optimizer.learning_rate)
            (3, 0.25)
        """
        if not self.built:
            raise ValueError(
                "You are calling `set_weights()` on an optimizer that has not yet been built. "
                "Please call `optimizer.build(trainable_variables)` to create the optimizer "
                "weights before calling `set_weights()`."
            )
        pairs = [
            (variable, np.asarray(weight))
            for variable, weight in zip(self.variables, weights, strict=False)
        ]
        for variable, value in pairs:
            if variable.shape != value.shape:
                raise ValueError(
                    f"Optimizer variable {variable.name} has shape {variable.shape} not compatible "
                    f"with provided weight shape {value.shape}."
                )
        for variable, value in pairs:
            variable.assign(value.astype(variable.dtype))

    def save_own_variables(self, store: Any) -> None:
        """Put `variables` into a store, under "0", "1" and so on, as Keras' files have them.

        Args:
            store: Where they go, as a dict.
        """
        for number, variable in enumerate(self.variables):
            store[str(number)] = variable

    def load_own_variables(self, store: Any) -> None:
        """Set `variables` to what `save_own_variables` put into a store.

        Where it has more or fewer, as of an optimizer that has taken no step yet, a warning says so
        and nothing is set.

        Args:
            store: What the file has of this optimizer, as a dict of arrays.

        Raises:
            ValueError: One is of another shape. None was set.
        """
        from mirrored.optim.stored import load_into  # Few programs read such files.

        load_into(self, store)

    def stateless_apply(
        self, optimizer_variables: Any, grads: Any, trainable_variables: Any
    ) -> NoReturn:
        """Refuse, as Keras does on TensorFlow.

        Args:
            optimizer_variables: Values.
            grads: Gradients.
            trainable_variables: Values.
        """
        raise ValueError(
            "stateless_apply is not supported here, nor with Keras on TensorFlow: a step writes "
            "the variables of all replicas. Call `apply(grads, trainable_variables)`."
        )
