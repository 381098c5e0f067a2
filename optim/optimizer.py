"""What all optimizers share: the learning rate, the step count, settings, and taking a step.

An optimizer is an update rule plus its slots. The rule is a pure function; its results are computed
for every replica first (`updates.py`) and written afterwards.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from mirrored import _overrides, devices, ops
from mirrored._absent import absent_members
from mirrored._arguments import is_ours, takes_older
from mirrored._logging import logger, warn_caller
from mirrored._naming import name_scope, snake_case, unique_name
from mirrored._numbers import check_count
from mirrored._reprs import made_with
from mirrored._threads import failed, raise_failed
from mirrored._tracebacks import shortened
from mirrored._types import DTypeLike, ShapeLike, TensorLike
from mirrored.autodiff import GradientTape
from mirrored.distribute import Strategy, get_replica_context, get_strategy, has_strategy
from mirrored.distribute.distributed_variables import copies_of
from mirrored.distribute.global_batch import GlobalBatch, global_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import only, recorded_by
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import (
    LearningRate,
    Tensors,
    check_number,
    optional_number,
    scheduled,
)
from mirrored.optim.slots import SAME_SCOPE, Kept, Slots, build_once, unknown
from mirrored.optim.transforms import Clipping
from mirrored.optim.updates import Plan, Rule, RuleByVariable, Update
from mirrored.program.variable_access import ruled_by
from mirrored.serialization.constructor_arguments import arguments_of, deserialized, serialized
from mirrored.variables import Variable, VariableAggregation
from mirrored.variables.variable import assign_together

Initializer = str | Callable[..., Any]

# The settings that all optimizers have, in Keras' order.
SETTINGS = (
    *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum"),
    *("ema_overwrite_frequency", "loss_scale_factor", "gradient_accumulation_steps"),
)


@takes_older(ignored={"decay": "is no longer supported and will be ignored."})
@absent_members("tf.keras.optimizers.Optimizer")
class Optimizer(_overrides.Subclassable):
    """Base of the optimizers; a subclass names its slots and gives the rule in `update`.

    Or it defines `update_step(self, gradient, variable, learning_rate)`, which assigns what it
    computes, and `build`, as Keras' guides do: see `update_step`.

    Args:
        learning_rate: The size of a step, a number >= 0; or a `LearningRateSchedule`, which is
            given the number of steps before; or a function without arguments, whose number a
            recorded step keeps (a tensor that it computes from variables goes on to change).
        weight_decay: The part of each weight, times the learning rate, that a step takes away;
            None: none.
        clipnorm: The largest L2 norm of each gradient; None: any.
        clipvalue: The largest absolute value in a gradient; None: any.
        global_clipnorm: The largest L2 norm of all gradients together; None: any.
        use_ema: Whether to keep a moving average of each weight, which it has at the end of `fit`.
        ema_momentum: The part of the average that a step leaves in it, in [0, 1].
        ema_overwrite_frequency: Steps after which the weights become their averages; None: never.
        loss_scale_factor: What `scale_loss` multiplies losses by, and `apply_gradients` divides
            gradients by; None: nothing. `fit` does both.
        gradient_accumulation_steps: Only each so-manieth step changes the variables, with the mean
            of the gradients since the last change; 2 or more. None: each step does.
        name: What messages call it; None: the class's name in snake case, numbered.

    Attributes:
        elementwise: Whether `update` treats each element by itself. A recorded step then updates
            all variables of one dtype as one vector. A subclass that says so must keep to it; one
            that overrides `update` says so again.
        shared_names: Numbers that are kept once for all variables, with what they start as;
            `advance` says what they become.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([1.0, 2.0])
        >>> _ = mr.optim.SGD(learning_rate=3.0).apply_gradients([(mr.constant([0.1, 0.1]), v)])
        >>> v.numpy()
        array([0.7, 1.7], dtype=float32)
    """

    elementwise: ClassVar[bool] = False
    shared_names: ClassVar[Mapping[str, float]] = {}
    skips_non_finite: ClassVar[bool] = False  # Whether it leaves out steps that are not finite.
    _plannable: ClassVar[bool] = True  # Whether `_plans` depend on nothing but attributes.
    _configured: ClassVar[tuple[str, ...]] = ("learning_rate",)  # May be configurations themselves.
    __overrides__ = _overrides.OPTIMIZER

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """See to it that a class says `elementwise` of its own rule, not of one it inherited.

        Where it defines `update_step`, its own `build` is called once, whoever calls it how often.
        """
        super().__init_subclass__(**kwargs)
        cls._plannable = cls._plannable and is_ours(cls)
        build = vars(cls).get("build")
        if callable(build) and cls.update_step is not Optimizer.update_step:
            type.__setattr__(cls, "build", build_once(build))
        for owner in cls.__mro__:
            if "elementwise" in vars(owner):
                return
            if "update" in vars(owner) or "update_step" in vars(owner):
                cls.elementwise = False
                return

    def __init__(
        self,
        learning_rate: LearningRate,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
    ) -> None:
        clips = Clipping(clipnorm, clipvalue, global_clipnorm).checked()
        self.clipnorm, self.clipvalue, self.global_clipnorm = clips
        self.weight_decay = optional_number("weight_decay", weight_decay)
        self.loss_scale_factor = optional_number(
            "loss_scale_factor", loss_scale_factor, above_zero=True
        )
        rate: Any = learning_rate
        if is_tensor(rate) or not callable(rate):
            rate = check_number("learning_rate", learning_rate)
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._strategy = get_strategy()
        self._slots: Kept = {}
        self.use_ema = bool(use_ema)
        self.ema_momentum = ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        if self.use_ema:
            self.ema_momentum = check_number("ema_momentum", ema_momentum, at_most=1.0)
            if ema_overwrite_frequency:
                check_count("ema_overwrite_frequency", ema_overwrite_frequency, least=1)
        if gradient_accumulation_steps is not None:
            check_count("gradient_accumulation_steps", gradient_accumulation_steps, least=2)
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._plans: dict[tuple[int, ...], Plan] = {}  # Of steps, by the ids of their variables.
        self._added: list[tuple[Variable | None, str, Variable]] = []  # For what, name, itself.
        self._early: list[Variable] = []  # What was there before `build`.
        self._trainable_variables: list[Variable] = []
        # The attributes before a `build` of a subclass's own, once that was called.
        self._unbuilt: dict[str, Any] | None = None
        self._undecayed: list[Variable] = []
        self._undecayed_names: str | None = None
        self._rates = 0  # How often there was a new schedule: a recorded step has the old one.
        once = VariableAggregation.ONLY_FIRST_REPLICA
        with name_scope(""):  # As Keras' objects, it has names of its own.
            if not callable(rate):
                rate = Variable(rate, trainable=False, name="learning_rate", dtype=ops.floatx())
                rate._traits.path = f"{self.name}/learning_rate"
            self._learning_rate: Variable | Callable[..., Any] = rate
            self._iterations = Variable(
                0, trainable=False, name="iterations", dtype=ops.int64, aggregation=once
            )
            self._iterations._traits.path = f"{self.name}/iteration"
            self._shared = [
                Variable(start, trainable=False, name=f"{self.name}/{name}", dtype=ops.floatx())
                for name, start in self.shared_names.items()
            ]
        self._warned: set[str] = set()
        self._base_attributes = frozenset(vars(self))

    if not TYPE_CHECKING:  # It would tell type checkers that every attribute can be set.

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name != "learning_rate":  # On which no plan depends.
                vars(self)["_plans"] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "_slots": list(self._slots.values()), "_plans": {}}
        return {**state, "_unbuilt": None if self._unbuilt is None else {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Slots are known by their variables' identities, which are others now.
        self._slots = {id(variable): (variable, slots) for variable, slots in state["_slots"]}

    def __repr__(self) -> str:
        return made_with(self, always=("learning_rate",))

    # ------------------------------------------------------------------ the rule

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The names of the values that are kept for each variable beside it."""
        return ()

    def slot_names_for(self, variable: Variable) -> tuple[str, ...]:
        """Return those of `slot_names` that a variable has: all, unless its rule is another.

        Args:
            variable: The variable.
        """
        return self.slot_names

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and the number that it is full of before the first step.

        None instead of the number: it starts as the variable itself.

        Args:
            name: One of the names of what is kept for the variable.
            shape: The shape of the variable that it is kept for.
        """
        return shape, 0.0

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value of a variable and of its slots; it changes nothing.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            value: The variable's value.
            slots: The values of `slot_names`; behind them those of `shared_names`, as `advance`
                returned them, scalars of the variable's dtype.
            learning_rate: A scalar of the variable's dtype.
            step: The number of this step, from 1, a scalar of the variable's dtype.
        """
        raise NotImplementedError(
            f"The optimizer {type(self).__name__} has no `update`. Define `update(self, gradient, "
            "value, slots, learning_rate, step)` that returns the new value and the new slots, or "
            "`update_step(self, gradient, variable, learning_rate)` that assigns them."
        )

    def advance(self, shared: Tensors, step: Tensor) -> Tensors:
        """Return what the numbers of `shared_names` become in a step: once for all variables.

        Args:
            shared: The numbers before the step, scalars.
            step: The number of this step, from 1, a scalar of their dtype.
        """
        return shared

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: TensorLike) -> None:
        """Update one variable: assign it and what is kept for it their new values.

        A subclass defines it, or `update`; one of an optimizer there is may call it. It is run in
        each step, or once where a step is recorded, for every variable that has a gradient. In it a
        variable has its value on the replica that is updated.

        Args:
            gradient: The gradient of the global batch, of the variable's shape and dtype.
            variable: The variable.
            learning_rate: A scalar.
        """
        self.rule.update_in_place(gradient, variable, learning_rate)

    def assign(self, variable: Variable, value: TensorLike) -> None:
        """Give a variable a value, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign(ops.cast(value, variable.dtype))

    def assign_add(self, variable: Variable, value: TensorLike) -> None:
        """Add a value to a variable, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign_add(ops.cast(value, variable.dtype))

    def assign_sub(self, variable: Variable, value: TensorLike) -> None:
        """Take a value from a variable, in `update_step`.

        Args:
            variable: A variable that is trained, or one of the optimizer's.
            value: The value, in any dtype.
        """
        variable.assign_sub(ops.cast(value, variable.dtype))

    def _get_variable_index(self, variable: Variable) -> int:
        """Return the place of a variable among those that `build` was given, as Keras calls it."""
        for i, trained in enumerate(self._trainable_variables):
            if variable is trained or any(variable is copy for copy in copies_of(trained)):
                return i
        raise KeyError(unknown(variable))

    # ------------------------------------------------------------------ its parts

    @property
    def slots(self) -> Slots:
        """What it keeps for each variable."""
        return Slots(self)

    @property
    def rule(self) -> Rule:
        """How it computes a step: by `update`, or by `update_step` where a subclass defines it."""
        by_variable = type(self).update_step is not Optimizer.update_step
        return RuleByVariable(self) if by_variable else Rule(self)

    @property
    def within(self) -> tuple["Optimizer", ...]:
        """This optimizer, and those that it is around."""
        return (self,)

    @property
    def _slot_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of slots that lie together for each variable, before the next group's for all."""
        return (self.slot_names,)

    def _weight_decay_for(self, variable: Variable) -> float | None:
        """Return the weight decay of a variable that is not excluded from it."""
        return self.weight_decay

    def prepare(
        self,
        variables: Sequence[Variable],
        gradients: Any,
        among: Sequence[Variable] | None = None,
    ) -> Update:
        """Return one step's new values, on every replica, from gradients that are reduced.

        Args:
            variables: The variables to update.
            gradients: For each the gradient, equal on all replicas: per-replica or plain, in a
                list; or as `Strategy.sum_gradients` returns them.
            among: All variables that are trained, where not each has a gradient.

        Raises:
            ValueError: A gradient has another shape or dtype than its variable, or that was made in
                another strategy's scope than this optimizer.
            ResourceExhaustedError: A device has no room for the new values.
        """
        return self.rule.prepare(variables, gradients, among)

    # ------------------------------------------------------------------ settings

    @property
    def learning_rate(self) -> Any:
        """The size of a step: a variable, which may be set to a number between steps.

        Of a schedule it is the value at the next step; another schedule may be set in its place.
        """
        if isinstance(self._learning_rate, Variable):
            return self._learning_rate
        return scheduled(self._learning_rate, self._iterations)

    @learning_rate.setter
    def learning_rate(self, value: LearningRate) -> None:
        if callable(value) and not is_tensor(value):
            self._learning_rate = value
            self._rates += 1
            return
        if not isinstance(self._learning_rate, Variable):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its "
                "`learning_rate` constructor argument, hence its learning rate is not settable. "
                f"Received: learning_rate={value!r}. Create it with a float `learning_rate`."
            )
        self._learning_rate.assign(check_number("learning_rate", value))

    @property
    def iterations(self) -> Any:
        """The number of changes of the variables: an int64 variable.

        A tensor where several steps make one change (`gradient_accumulation_steps`).
        """
        if self.gradient_accumulation_steps:
            return self._iterations.read_value() // self.gradient_accumulation_steps
        return self._iterations

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Leave variables as they are where others lose a part of their value, before any step.

        Args:
            var_list: The variables.
            var_names: Regular expressions; a variable whose name has a match is left alone.

        Raises:
            ValueError: The optimizer has slots already.

        Example:
            >>> import mirrored as mr
            >>> kernel, bias = mr.Variable(1.0, name="kernel"), mr.Variable(1.0, name="bias")
            >>> optimizer = mr.optim.SGD(1.0, weight_decay=0.5)
            >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
            >>> _ = optimizer.apply_gradients([(mr.constant(0.0), v) for v in (kernel, bias)])
            >>> float(kernel), float(bias)
            (0.5, 1.0)
        """
        if self._slots:
            raise ValueError(
                "`exclude_from_weight_decay()` can only be configured before the optimizer is "
                "built. Call it before the first step."
            )
        self._undecayed = list(var_list or ())
        self._undecayed_names = "|".join(sorted(set(var_names or ()))) or None

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
        rate: Any = self._learning_rate
        if isinstance(rate, Variable):
            rate = float(rate.numpy())
        return {
            "name": self.name,
            "learning_rate": serialized(rate),
            **{name: serialized(getattr(self, name)) for name in SETTINGS},
            **arguments_of(self, without=("name", "learning_rate", *SETTINGS)),
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
        return cls(**read_config(config, cls._configured, custom_objects))

    # ------------------------------------------------------------------ variables

    @property
    def variables(self) -> list[Variable]:
        """The step count, the learning rate if it is a number, slots, and shared numbers.

        In Keras' order: of the slots first moving averages and sums of gradients, those of all
        variables one after the other.
        """
        rate = [self._learning_rate] if isinstance(self._learning_rate, Variable) else []
        return [self._iterations, *rate, *self.slots.ordered(), *self._shared]

    @property
    def built(self) -> bool:
        """Whether it has been told of variables, by `build` or by a first step."""
        return bool(self._slots)

    def build(self, variables: Iterable[Variable]) -> None:
        """Make what is kept for `variables`, equal on every replica, where there is none yet.

        A subclass that defines `update_step` calls it in a `build` of its own, and then makes its
        variables with `add_variable_from_reference`; it is called once, before the first step.

        Args:
            variables: The variables that are to be trained.

        Raises:
            ValueError: A variable was made in another strategy's scope than this optimizer.
        """
        self.slots.build(list(variables))

    def add_variable(
        self,
        shape: ShapeLike,
        initializer: Initializer = "zeros",
        dtype: DTypeLike | None = None,
        aggregation: str | None = "none",
        layout: None = None,
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
        if layout is not None:
            raise ValueError(f"Variables have no layout here. Received: layout={layout!r}")
        variable = _new_variable(self, shape, initializer, dtype, name or "variable")
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
        full_name = f"{reference_variable.name.removesuffix(':0').replace('/', '_')}_{name}"
        with devices.device(reference_variable.device):
            variable = _new_variable(
                self, reference_variable.shape, initializer, reference_variable.dtype, full_name
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
        is_single = isinstance(initializer, str) or callable(initializer)
        starts: list[Any] = [initializer] * len(names) if is_single else list(initializer)  # type: ignore[arg-type]
        if len(names) != len(starts):
            raise ValueError(
                "The number of provided names must match the number of provided initializers. "
                f"Received name='{name}', initializer='{initializer}'"
            )
        pairs = list(zip(names, starts, strict=True))
        rows = [
            [self.add_variable_from_reference(variable, *pair) for pair in pairs]
            for variable in trainable_variables
        ]
        columns = tuple([row[i] for row in rows] for i in range(len(names)))
        return columns[0] if isinstance(name, str) else columns

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Set variables to their averages, all or none: `fit` does so at its end.

        Args:
            var_list: The variables; those that were never updated stay as they are.
        """
        averages = {id(variable): average for variable, average in self.slots.averages()}
        assign_together((v, averages[id(v)]) for v in var_list if id(v) in averages)

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
        assign_together((variable, value.astype(variable.dtype)) for variable, value in pairs)

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Put `variables` into a store, under "0", "1" and so on, as Keras' files have them.

        Args:
            store: Where they go, as a dict.
        """
        for number, variable in enumerate(self.variables):
            store[str(number)] = variable

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Set `variables` to what `save_own_variables` put into a store.

        Where it has more or fewer, as of an optimizer that has taken no step yet, a warning says so
        and nothing is set.

        Args:
            store: What the file has of this optimizer, as a dict of arrays.

        Raises:
            ValueError: One is of another shape. None was set.
        """
        own = self.variables
        if len(store.keys()) != len(own):
            warn_caller(skipped(self, len(own), len(store.keys())))
            return
        assign_together(
            (variable, np.asarray(store[str(number)]).astype(variable.dtype, copy=False))
            for number, variable in enumerate(own)
        )

    def stateless_apply(
        self,
        optimizer_variables: Sequence[Any],
        grads: Sequence[Any],
        trainable_variables: Sequence[Any],
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

    # ------------------------------------------------------------------ a step

    def scale_loss(self, loss: float | Tensor) -> Any:
        """Return a loss times `loss_scale_factor`, inside the tape; `apply_gradients` undoes it.

        Args:
            loss: A scalar.
        """
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    def unscaled(self, gradients: Iterable[Any]) -> list[Any]:
        """Return gradients of a scaled loss as those of the loss itself.

        Args:
            gradients: The gradients; None where there is none.
        """
        if self.loss_scale_factor is None:
            return list(gradients)
        return [g if g is None else g / self.loss_scale_factor for g in gradients]

    @shortened
    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Variable:
        """Take one step: sum the replicas' gradients, clip, update every copy of each variable.

        Called in a replica's context it waits for the other replicas. Called outside all scopes
        it takes the gradients as they are.

        Args:
            grads_and_vars: Pairs of gradient and variable. A gradient that is None, because the
                loss does not depend on the variable, leaves it alone.

        Returns:
            The variable that counts the steps.

        Raises:
            ValueError: There is no gradient at all, shapes differ, a variable is there twice, or
                the optimizer was made in another strategy's scope.
            TypeError: What is to be updated is no variable.
            RuntimeError: The call is made in the cross-replica context.
        """
        if failed:  # A save that a thread has made.
            raise_failed()
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        context = get_replica_context()
        if context is None:
            raise RuntimeError(
                "apply_gradients() cannot be called in cross-replica context. Use "
                "strategy.run to enter replica context."
            )
        if has_strategy() and context.strategy is not self._strategy:
            raise ValueError(
                f"Optimizer ({self.name}) was not created in the distribution strategy scope of "
                f"({context.strategy}). {SAME_SCOPE}"
            )
        variables = among = [variable for _, variable in pairs]
        gradients = [gradient for gradient, _ in pairs]
        plan, batch = self._plans.get(tuple(map(id, variables))), global_batch()
        if plan is None:
            _check_variables(variables)
        if batch is not None:
            pairs = _as_in_first(pairs, batch, context.replica_id_in_sync_group)
        specs = [getattr(gradient, "_spec", None) for gradient in gradients]
        if plan is None or batch is not None or specs != plan.specs:
            kept = _with_gradients(pairs, self._warned)
            variables = [variable for _, variable in kept]
            with only():  # As Keras' optimizers, it takes gradients of any dtype.
                gradients = [ops.cast(adopt(g, v.dtype), v.dtype) for g, v in kept]
        with only():
            gradients = self.unscaled(gradients)
        if batch is not None:
            gradients = _by_examples(gradients, batch, context.replica_id_in_sync_group)
        context.merge_call(self.__sum_and_apply, (variables, gradients, among))
        return self._iterations

    def __sum_and_apply(
        self, strategy: Strategy, variables: Any, gradients: Any, among: Any
    ) -> None:
        self.prepare(variables, strategy.sum_gradients(variables, gradients), among).commit()

    @shortened
    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        """Take one step, as `apply_gradients` does, with gradients and variables in two lists.

        Args:
            grads: The gradients; none at all do nothing.
            trainable_variables: The variables, one a gradient; None: those of `build`.

        Raises:
            ValueError: There are more of the one than of the other, or none were built for.

        Example:
            >>> import mirrored as mr
            >>> v, optimizer = mr.Variable(1.0), mr.optim.SGD(0.5)
            >>> optimizer.apply([mr.constant(1.0)], [v])
            >>> float(v)
            0.5
        """
        gradients = list(grads)
        if not gradients:
            return
        slots = self.slots.snapshot()
        known = [v for v in self._trainable_variables if id(v) in slots]
        variables = known if trainable_variables is None else list(trainable_variables)
        if not variables:
            raise ValueError(
                "When passing `grads` without `variables`, the optimizer must already be built on "
                "a list of variables. Call `optimizer.build(trainable_variables)` first."
            )
        if len(variables) != len(gradients):
            raise ValueError(
                f"Pass one gradient per variable. Received: a list of {len(gradients)} gradients, "
                f"and {len(variables)} variables."
            )
        self.apply_gradients(zip(gradients, variables, strict=True))

    @shortened
    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Variable:
        """Compute the gradients of a loss, and apply them, as optimizers of TensorFlow 2 do.

        The loss is not to be scaled: `scale_loss` is taken into account.

        Args:
            loss: A function without arguments that returns the loss; or a tensor, with its tape.
            var_list: The variables; or a function that returns them, called after the loss.
            tape: The tape that recorded the loss; None: a tape around the call of `loss`.

        Returns:
            The variable that counts the steps.

        Raises:
            ValueError: A tensor comes without its tape; and as `apply_gradients`.

        Example:
            >>> import mirrored as mr
            >>> v, optimizer = mr.Variable(3.0), mr.optim.SGD(0.5)
            >>> _ = optimizer.minimize(lambda: v * v / 2.0, [v])
            >>> float(v)
            1.5
        """
        computes = callable(loss) and not is_tensor(loss)
        if not computes and tape is None:
            raise ValueError(
                "`tape` is required when a `Tensor` loss is passed. Received: "
                f"loss={loss!r:.200}, tape=None. Compute the loss in a `GradientTape`, and pass "
                "both; or pass a function that returns the loss."
            )
        recording = tape or GradientTape()
        if computes:
            with recording:
                if not callable(var_list):
                    recording.watch(var_list)
                loss = loss()
        variables = list(var_list() if callable(var_list) else var_list)
        with only():
            ones = ops.ones_like(loss)
            scaled = self.scale_loss(ones)
        # Without a scale there is no seed, as where the tape is called without this method.
        seed = None if scaled is ones else scaled
        gradients = recording.gradient(loss, variables, output_gradients=seed)
        return self.apply_gradients(zip(gradients, variables, strict=True))


def _new_variable(
    optimizer: Optimizer, shape: Any, initializer: Initializer, dtype: Any, name: str
) -> Variable:
    kind = ops.as_dtype(dtype or ops.floatx())
    known: dict[Any, Any] = {"zeros": ops.zeros, "ones": ops.ones}
    start = known.get(initializer, initializer) if isinstance(initializer, str) else initializer
    if not callable(start):
        raise ValueError(
            '`initializer` must be "zeros", "ones" or an initializer. Received: '
            f"initializer={initializer!r}. Pass `keras.initializers.get(...)` of it."
        )
    with recorded_by(None), only(), ruled_by(None), optimizer._strategy.scope():
        return Variable(
            lambda: start(tuple(shape), dtype=kind),
            trainable=False,
            name=f"{optimizer.name}/{name}",
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
        )


def _with_gradients(
    pairs: list[tuple[Any, Variable]], warned: set[str]
) -> list[tuple[Any, Variable]]:
    """Return the pairs that have a gradient; a variable without one is warned of once."""
    kept = [pair for pair in pairs if pair[0] is not None]
    if not kept:
        raise ValueError(
            "No gradients provided for any variable. Received: variables "
            f"{[variable.name for _, variable in pairs]}. Compute the loss from them, inside "
            "the tape."
        )
    missing = {variable.name for gradient, variable in pairs if gradient is None}
    if missing - warned:  # Once, not in every replica of every step.
        warned |= missing
        logger.warning(
            "Gradients do not exist for variables %s; these variables keep their values.",
            sorted(missing),
        )
    return kept


def _as_in_first(
    pairs: list[tuple[Any, Variable]], batch: GlobalBatch, replica: int
) -> list[tuple[Any, Variable]]:
    """Return gradients of zeros, without examples, where the first replica has gradients."""
    used = batch.used(replica, [gradient is not None for gradient, _ in pairs])
    if not batch.is_empty(replica):
        return pairs
    with only():
        return [
            (ops.zeros(variable.shape, variable.dtype) if is_used else None, variable)
            for is_used, (_, variable) in zip(used, pairs, strict=True)
        ]


def _by_examples(gradients: list[Any], batch: GlobalBatch, replica: int) -> list[Any]:
    """Return a shard's gradients as they count in the sum: nothing where it has no examples."""
    weights = batch.weights("gradients", replica, gradients)
    if all(weight == 1.0 for weight in weights):
        return gradients
    with only():  # The sum is that of the optimizer, and nothing to be differentiated.
        if batch.is_empty(replica):
            return [ops.zeros(g.shape, g.dtype) for g in gradients]
        return [g * weight for g, weight in zip(gradients, weights, strict=True)]


def _check_variables(variables: Sequence[Any]) -> None:
    """Refuse what is no variable, and a variable that is there twice."""
    seen: set[int] = set()
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"Optimizers update only variables created by mr.Variable. Received: {variable!r}"
            )
        if id(variable) in seen:
            raise ValueError(
                "A step can update each variable only once. Received: more than one gradient for "
                f"{variable.name}. Add them up first."
            )
        seen.add(id(variable))


def skipped(optimizer: Optimizer, own: int, stored: int) -> str:
    """Return what is said where a file has more or fewer variables than an optimizer.

    Args:
        optimizer: The optimizer.
        own: How many it has.
        stored: How many the file has.
    """
    unbuilt = (
        " This is likely because the optimizer has not been called/built yet."
        if not optimizer.built
        else ""
    )
    return (
        f"Skipping variable loading for optimizer '{optimizer.name}', because it has {own} "
        f"variables whereas the saved optimizer has {stored} variables.{unbuilt}"
    )


def read_config(
    config: Mapping[str, Any], names: tuple[str, ...], custom_objects: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments of a configuration, with what some of them describe.

    Args:
        config: The configuration.
        names: Those that may be configurations themselves.
        custom_objects: Classes and functions that these may name.
    """
    arguments = dict(config)
    for name in names:
        if isinstance(arguments.get(name), dict):
            arguments[name] = deserialized(arguments[name], None, custom_objects)
    return arguments
