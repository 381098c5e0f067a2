"""What all optimizers share: the learning rate, the step count, settings, and taking a step.

An optimizer is an update rule plus its slots. The rule is a pure function; its results are computed
for every replica first (`updates.py`) and written afterwards.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from mirrored import _overrides, ops
from mirrored._absent import absent_members
from mirrored._arguments import explained, takes_older
from mirrored._logging import logger
from mirrored._name_scope import name_scope
from mirrored._reprs import made_with
from mirrored._tracebacks import shortened
from mirrored.autodiff import GradientTape
from mirrored.distribute import Strategy, get_replica_context, has_strategy
from mirrored.distribute.distributed_variables import copy_of
from mirrored.distribute.global_batch import GlobalBatch, global_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import only
from mirrored.optim.clipping import checked_clips
from mirrored.optim.configured import ConfiguredOptimizer
from mirrored.optim.hyperparameters import LearningRateSchedule, check_number
from mirrored.optim.slots import SAME_SCOPE
from mirrored.optim.update_steps import UpdateSteps
from mirrored.optim.weights import OptimizerWeights
from mirrored.variables import Variable, VariableAggregation


@explained
@takes_older(ignored={"decay": "is no longer supported and will be ignored."})
@absent_members("tf.keras.optimizers.Optimizer")
class Optimizer(UpdateSteps, OptimizerWeights, ConfiguredOptimizer):
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
        ema_overwrite_frequency: After so many steps the weights become their averages; None: never.
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

    skips_non_finite: ClassVar[bool] = False  # Whether it leaves out steps that are not finite.
    _never_called = _overrides.OPTIMIZER
    _for_itself = _overrides.OPTIMIZER_ITSELF
    _called_beside = _overrides.BESIDE_UPDATE_STEP

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """See to it that a class says `elementwise` of its own rule, not of one it inherited."""
        super().__init_subclass__(**kwargs)
        for owner in cls.__mro__:
            if "elementwise" in vars(owner):
                return
            if "update" in vars(owner) or "update_step" in vars(owner):
                cls.elementwise = False
                return

    def __init__(
        self,
        learning_rate: Any,
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
        clips = checked_clips(
            clipnorm=clipnorm, clipvalue=clipvalue, global_clipnorm=global_clipnorm
        )
        self.clipnorm = clips["clipnorm"]
        self.clipvalue = clips["clipvalue"]
        self.global_clipnorm = clips["global_clipnorm"]
        self.weight_decay = (
            None if weight_decay is None else check_number("weight_decay", weight_decay)
        )
        self.loss_scale_factor = (
            None
            if loss_scale_factor is None
            else check_number("loss_scale_factor", loss_scale_factor, above_zero=True)
        )
        rate = learning_rate
        if is_tensor(rate) or not callable(rate):
            rate = check_number("learning_rate", learning_rate)
        super().__init__(name, use_ema, ema_momentum, ema_overwrite_frequency)
        self._accumulate(gradient_accumulation_steps)
        self._undecayed: list[Variable] = []
        self._undecayed_names: str | None = None
        self._make_variables(rate)
        self._warned: set[str] = set()
        self._base_attributes = frozenset(vars(self))

    def __repr__(self) -> str:
        return made_with(self, always=("learning_rate",))

    def _make_variables(self, rate: Any) -> None:
        self._learning_rate: Variable | Callable[..., Any] = rate
        self._rates = 0  # How often there was a new schedule: a recorded step has the old one.
        once = VariableAggregation.ONLY_FIRST_REPLICA
        with name_scope(""):  # As Keras' objects, it has names of its own.
            if not callable(rate):
                self._learning_rate = Variable(
                    rate, trainable=False, name="learning_rate", dtype=ops.floatx()
                )
            self._iterations = Variable(
                0, trainable=False, name="iterations", dtype=ops.int64, aggregation=once
            )
            paths = {"learning_rate": self._learning_rate, "iteration": self._iterations}
            for path, variable in paths.items():
                if isinstance(variable, Variable):
                    variable._traits.path = f"{self.name}/{path}"
            self._shared = [
                Variable(start, trainable=False, name=f"{self.name}/{name}", dtype=ops.floatx())
                for name, start in self.shared_names.items()
            ]

    @property
    def learning_rate(self) -> Any:
        """The size of a step: a variable, which may be set to a number between steps.

        Of a schedule it is the value at the next step; another schedule may be set in its place.
        """
        if isinstance(self._learning_rate, Variable):
            return self._learning_rate
        return self._scheduled(self._learning_rate, self._iterations)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if callable(value) and not is_tensor(value):
            self._learning_rate = value
            self._rates += 1
            return
        if not isinstance(self._learning_rate, Variable):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its "
                "`learning_rate` constructor argument, hence its learning rate is not settable. "
                f"Received: learning_rate={value!r}. Make it with a float `learning_rate`."
            )
        self._learning_rate.assign(check_number("learning_rate", value))

    def _scheduled(self, schedule: Callable[..., Any], steps: Any) -> Tensor:
        """Return what a schedule or a function says, after so many steps."""
        rate = schedule(steps) if isinstance(schedule, LearningRateSchedule) else schedule()
        return ops.cast(ops.convert_to_tensor(rate), ops.floatx())

    def _rate(self, replica: int, taken: Tensor) -> Tensor:
        if isinstance(self._learning_rate, Variable):
            rate: Tensor = copy_of(self._learning_rate, replica).read_value()
            return rate
        return self._scheduled(self._learning_rate, taken - 1)

    @property
    def iterations(self) -> Any:
        """The number of changes of the variables: an int64 variable.

        A tensor where several steps make one change (`gradient_accumulation_steps`).
        """
        if self.gradient_accumulation_steps:
            return self._iterations.read_value() // self.gradient_accumulation_steps
        return self._iterations

    @property
    def variables(self) -> list[Variable]:
        """The step count, the learning rate if it is a number, slots, and shared numbers.

        In Keras' order: of the slots first moving averages and sums of gradients, those of all
        variables one after the other.
        """
        return [*self._own_variables, *self._ordered_slots(), *self._shared]

    @property
    def _own_variables(self) -> list[Variable]:
        rate = [self._learning_rate] if isinstance(self._learning_rate, Variable) else []
        return [self._iterations, *rate]

    @property
    def within(self) -> tuple["Optimizer", ...]:
        """This optimizer, and those that it is around."""
        return (self,)

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
            >>> _ = optimizer.apply_gradients([(mr.constant(0.0), each) for each in (kernel, bias)])
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

    def _decay(self, variable: Variable) -> float:
        if not self.weight_decay or self._is_excluded(variable):
            return 0.0
        return self.weight_decay

    def _is_excluded(self, variable: Variable) -> bool:
        """Return whether `exclude_from_weight_decay` was told of a variable."""
        if any(variable is each for each in self._undecayed):
            return True
        names = self._undecayed_names
        return names is not None and re.search(names, variable.name) is not None

    def scale_loss(self, loss: Any) -> Any:
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
        return [each if each is None else each / self.loss_scale_factor for each in gradients]

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
        _check_variables([variable for _, variable in pairs])
        batch = global_batch()
        if batch is not None:
            pairs = _as_in_first(pairs, batch, context.replica_id_in_sync_group)
        kept = self._with_gradients(pairs)
        variables, among = ([variable for _, variable in each] for each in (kept, pairs))
        with only():
            gradients = [_in_dtype_of(variable, gradient) for gradient, variable in kept]
            gradients = self.unscaled(gradients)
        if batch is not None:
            gradients = _by_examples(gradients, batch, context.replica_id_in_sync_group)
        context.merge_call(self._sum_and_apply, (variables, gradients, among))
        return self._iterations

    @shortened
    def apply(self, grads: Sequence[Any], trainable_variables: Any = None) -> None:
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
        slots = self.slots()
        known = [each for each in self._trainable_variables if id(each) in slots]
        variables = known if trainable_variables is None else list(trainable_variables)
        if not variables:
            raise ValueError(
                "When passing `grads` without `variables`, the optimizer must already be built on "
                "a list of variables. Call `optimizer.build(trainable_variables)` first."
            )
        if len(variables) != len(gradients):
            raise ValueError(
                "There is one gradient a variable. Received: a list of "
                f"{len(gradients)} gradients, and {len(variables)} variables."
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

    def _with_gradients(self, pairs: list[tuple[Any, Variable]]) -> list[tuple[Any, Variable]]:
        kept = [pair for pair in pairs if pair[0] is not None]
        if not kept:
            raise ValueError(
                "No gradients provided for any variable. Received: variables "
                f"{[variable.name for _, variable in pairs]}. Compute the loss from them, inside "
                "the tape."
            )
        missing = {variable.name for gradient, variable in pairs if gradient is None}
        if missing - self._warned:  # Once, not in every replica of every step.
            self._warned |= missing
            logger.warning(
                "Gradients do not exist for variables %s; they stay as they are.", sorted(missing)
            )
        return kept

    def _sum_and_apply(
        self,
        strategy: Strategy,
        variables: list[Variable],
        gradients: list[Any],
        among: list[Variable],
    ) -> None:
        self.prepare(variables, strategy.sum_gradients(variables, gradients), among).commit()


def _in_dtype_of(variable: Variable, gradient: Any) -> Any:
    """Return a gradient in its variable's dtype, as Keras' optimizers take any."""
    adopted = adopt(gradient, variable.dtype)
    return adopted if adopted.dtype == variable.dtype else ops.cast(adopted, variable.dtype)


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
            return [ops.zeros(each.shape, each.dtype) for each in gradients]
        return [each * weight for each, weight in zip(gradients, weights, strict=True)]


def _check_variables(variables: Sequence[Any]) -> None:
    """Refuse what is no variable, and a variable that is there twice."""
    seen: set[int] = set()
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"Optimizers update variables made by mr.Variable. Received: {variable!r}"
            )
        if id(variable) in seen:
            raise ValueError(
                "A step updates each variable once. Received: more than one gradient for "
                f"{variable.name}. Add them up first."
            )
        seen.add(id(variable))
