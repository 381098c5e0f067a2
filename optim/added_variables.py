"""Variables that a subclass adds to an optimizer in its `build`, as Keras' optimizers do.

They are equal on every replica, and among all that is kept for a variable where they are for it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mirrored import _nest, devices, ops
from mirrored.ops.hooks import only, recorded_by
from mirrored.ops.spec import Shape
from mirrored.optim.slots import Slots
from mirrored.optim.updates import Updating
from mirrored.program.variable_creation import ruled_by
from mirrored.variables import Variable, VariableAggregation

Initializer = str | Callable[..., Any]
_HOLDERS = (Variable, list, tuple, dict)


class AddedVariables(Updating):
    """Keeps them, in the order in which they were made."""

    _base_attributes: frozenset[str] = frozenset()
    _undecayed: list[Variable]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._added: list[tuple[Variable | None, str, Variable]] = []  # For what, name, itself.
        self._early: list[Variable] = []  # What was there before `build`.
        self._trainable_variables: list[Variable] = []
        # The attributes before a `build` of a subclass's own, once that was called.
        self._unbuilt: dict[str, Any] | None = None

    @property
    def by_variable(self) -> bool:
        """Whether `update_step` of a subclass is the rule."""
        raise NotImplementedError

    def build(self, variables: Iterable[Variable]) -> None:
        """Make what is kept for `variables`, equal on every replica, where there is none yet.

        A subclass that defines `update_step` calls it in a `build` of its own, and then makes its
        variables with `add_variable_from_reference`; it is called once, before the first step.

        Args:
            variables: The variables that are to be trained.

        Raises:
            ValueError: A variable was made in another strategy's scope than this optimizer.
        """
        given = list(variables)
        if not self._trainable_variables:
            self._early = [*(v for _, _, v in self._added), *self._in_attributes()]
        super().build(given)
        self._know(given)

    def _know(self, variables: Iterable[Variable]) -> None:
        """Remember the order of variables that are trained."""
        known = set(map(id, self._trainable_variables))
        self._trainable_variables += [each for each in variables if id(each) not in known]

    def add_variable(
        self,
        shape: Any,
        initializer: Initializer = "zeros",
        dtype: Any = None,
        aggregation: str | None = "none",
        layout: Any = None,
        name: str | None = None,
    ) -> Variable:
        """Make a variable of the optimizer, equal on every replica.

        Args:
            shape: Its shape.
            initializer: "zeros", "ones" or what is called with a shape and a dtype, as Keras'
                initializers are.
            dtype: Its dtype; None: floatx.
            aggregation: Accepted for compatibility: what `update_step` assigns is equal on all
                replicas.
            layout: None.
            name: Its name.

        Raises:
            ValueError: There is no such initializer, or a layout.
        """
        del aggregation
        variable = self._make(shape, initializer, dtype, layout, name or "variable")
        self._added.append((None, name or "variable", variable))
        return variable

    def add_variable_from_reference(
        self,
        reference_variable: Variable,
        name: str | None = None,
        initializer: Initializer = "zeros",
    ) -> Variable:
        """Make a variable of the optimizer, of the shape and dtype of one that it trains.

        Args:
            reference_variable: That variable.
            name: What it is called behind that one's name; None: "var".
            initializer: As for `add_variable`.

        Raises:
            ValueError: There is no such initializer.
        """
        name = name or "var"
        plain = reference_variable.name.removesuffix(":0").replace("/", "_")
        with devices.device(reference_variable.device):
            variable = self._make(
                reference_variable.shape,
                initializer,
                reference_variable.dtype,
                None,
                f"{plain}_{name}",
            )
        self._added.append((reference_variable, name, variable))
        return variable

    def add_optimizer_variables(
        self,
        trainable_variables: Iterable[Variable],
        name: str | Sequence[str],
        initializer: Initializer | Sequence[Initializer] = "zeros",
    ) -> Any:
        """Make variables of the optimizer for each of those that it trains.

        Args:
            trainable_variables: These.
            name: A name, as for `add_variable_from_reference`; or several.
            initializer: One for all names, or one for each.

        Returns:
            A list of variables; for several names a tuple of lists.

        Raises:
            ValueError: There are not as many initializers as names.
        """
        names = [name] if isinstance(name, str) else list(name)
        one = isinstance(initializer, str) or callable(initializer)
        starts: list[Any] = [initializer] * len(names) if one else list(initializer)  # type: ignore[arg-type]
        if len(names) != len(starts):
            raise ValueError(
                "The number of provided names must match the number of provided initializers. "
                f"Received name='{name}', initializer='{initializer}'"
            )
        made = [
            [
                self.add_variable_from_reference(each, *pair)
                for pair in zip(names, starts, strict=True)
            ]
            for each in trainable_variables
        ]
        columns = tuple([row[i] for row in made] for i in range(len(names)))
        return columns[0] if isinstance(name, str) else columns

    def _make(
        self, shape: Any, initializer: Initializer, dtype: Any, layout: Any, name: str
    ) -> Variable:
        if layout is not None:
            raise ValueError(f"Variables have no layout here. Received: layout={layout!r}")
        kind = ops.as_dtype(dtype or ops.floatx())
        known: dict[Any, Any] = {"zeros": ops.zeros, "ones": ops.ones}
        start = known.get(initializer, initializer) if isinstance(initializer, str) else initializer
        if not callable(start):
            raise ValueError(
                '`initializer` is "zeros", "ones" or an initializer. Received: '
                f"initializer={initializer!r}. Pass `keras.initializers.get(...)` of it."
            )
        with recorded_by(None), only(), ruled_by(None), self._strategy.scope():
            return Variable(
                lambda: start(tuple(shape), dtype=kind),
                trainable=False,
                name=f"{self.name}/{name}",
                aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            )

    # ------------------------------------------------------------------ what is kept

    def _in_attributes(self) -> list[Variable]:
        """Return the variables that a subclass made otherwise, and keeps in attributes."""
        known = {id(variable) for _, _, variable in self._added}
        known |= set(map(id, (*self._trainable_variables, *self._undecayed)))
        found: dict[int, Variable] = {}
        for name, value in vars(self).items():
            if name in self._base_attributes or not isinstance(value, _HOLDERS):
                continue
            for each in _nest.flatten(value):
                if isinstance(each, Variable) and id(each) not in known and not each.trainable:
                    found[id(each)] = each
        return list(found.values())

    def _ordered_slots(self) -> list[Variable]:
        """Return all that is kept, in Keras' order: that of `build`."""
        if not (self._added or self.by_variable):
            return super()._ordered_slots()
        early = set(map(id, self._early))
        found = [*(variable for _, _, variable in self._added), *self._in_attributes()]
        late = [each for each in found if id(each) not in early]
        return [*self._early, *super()._ordered_slots(), *late]

    def _names_added(self, variable: Variable) -> dict[str, Variable]:
        """Return what was added for a variable, by names that differ."""
        found: dict[str, Variable] = {}
        for reference, name, each in self._added:
            if reference is not variable:
                continue
            key, number = name, 0
            while key in found:
                number += 1
                key = f"{name}_{number}"
            found[key] = each
        return found

    def kept_names(self, variable: Variable) -> tuple[str, ...]:
        """Return the names of all that is kept for a variable, whoever asks for it.

        Args:
            variable: The variable.
        """
        return (*super().kept_names(variable), *self._names_added(variable))

    def kept_shape(self, variable: Variable, name: str) -> Shape:
        """Return the shape of what is kept for a variable.

        Args:
            variable: The variable.
            name: One of its `kept_names`.
        """
        added = self._names_added(variable)
        return added[name].shape if name in added else super().kept_shape(variable, name)

    def slots(self) -> Slots:
        """Return each variable that has slots, with them, by the variable's identity."""
        if not self._added:
            return super().slots()
        return {
            key: (variable, (*slots, *self._names_added(variable).values()))
            for key, (variable, slots) in self._slots.items()
        }
