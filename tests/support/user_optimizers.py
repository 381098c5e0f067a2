"""Optimizers as users of Keras write them, for any `keras`: Keras' own run them too."""

from typing import Any


def made_with(keras: Any) -> dict[str, type[Any]]:
    """Return the classes by name."""
    ops = keras.ops

    class Momentum(keras.optimizers.Optimizer):  # type: ignore[misc]
        """That of the documentation of Keras' `Optimizer`."""

        def __init__(self, learning_rate: Any = 0.1, momentum: float = 0.9, **settings: Any):
            super().__init__(learning_rate=learning_rate, **settings)
            self.momentum = momentum

        def build(self, variables: Any) -> None:
            super().build(variables)
            self.momentums = []
            for variable in variables:
                self.momentums.append(
                    self.add_variable_from_reference(reference_variable=variable, name="momentum")
                )

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            learning_rate = ops.cast(learning_rate, variable.dtype)
            gradient = ops.cast(gradient, variable.dtype)
            m = self.momentums[self._get_variable_index(variable)]
            scaled = ops.multiply(m, ops.cast(self.momentum, variable.dtype))
            self.assign(m, ops.subtract(scaled, ops.multiply(gradient, learning_rate)))
            self.assign_add(variable, m)

    class Means(keras.optimizers.Optimizer):  # type: ignore[misc]
        """One that keeps several for each variable, and one for all, and looks at its steps."""

        def __init__(self, learning_rate: Any = 0.1, **settings: Any):
            super().__init__(learning_rate, **settings)
            self.updates = self.add_variable((), dtype="float64", name="updates")

        def build(self, var_list: Any) -> None:
            if self.built:
                return
            super().build(var_list)
            self._means, self._squares = self.add_optimizer_variables(
                var_list, ["mean", "square"], ["zeros", "ones"]
            )
            self.largest = self.add_variable((2,), initializer="ones", dtype="float64")

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            index = self._get_variable_index(variable)
            mean, square = self._means[index], self._squares[index]
            step = ops.cast(self.iterations + 1, variable.dtype)
            self.assign_add(mean, (gradient - mean) * 0.5)
            self.assign(square, ops.maximum(square * 0.5, ops.square(gradient)))
            rate = ops.cast(learning_rate, variable.dtype) / ops.sqrt(step)
            self.assign_sub(variable, rate * mean / ops.sqrt(square))
            self.assign_add(self.updates, 1.0)
            self.assign(self.largest, ops.maximum(self.largest, ops.max(ops.abs(gradient))))

    class Doubled(keras.optimizers.Adam):  # type: ignore[misc]
        """One that is there, with other gradients."""

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            super().update_step(ops.multiply(gradient, 2.0), variable, learning_rate)

    return {each.__name__: each for each in (Momentum, Means, Doubled)}
