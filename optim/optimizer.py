"""What all optimizers share: the learning rate, the step count, clipping, and how updates land.

An optimizer is an update rule plus its slots. The rule is a pure function; here its results are
computed for every replica first and written afterwards, so that a step happens wholly or not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mirrored import _overrides, devices, ops
from mirrored._absent import absent_members, refused_members
from mirrored._arguments import explained
from mirrored._logging import logger
from mirrored._name_scope import name_scope
from mirrored.distribute import (
    DistributedValues,
    DistributedVariable,
    Strategy,
    get_replica_context,
    has_strategy,
)
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.global_batch import GlobalBatch, global_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import active_recorder, only, recorded_by
from mirrored.ops.spec import DType
from mirrored.optim.averaging import Averaging
from mirrored.optim.clipping import checked_clips, clipped
from mirrored.optim.hyperparameters import check_number
from mirrored.optim.slots import SAME_SCOPE
from mirrored.variables import DeviceVariable, Variable, VariableAggregation
from mirrored.variables.flat import FlatVariable, pack, packing_groups

Target = DeviceVariable | FlatVariable


@dataclass(frozen=True, slots=True)
class Update:
    """New values that are computed and not written yet."""

    values: tuple[tuple[Target, Tensor], ...]

    def commit(self) -> None:
        """Write them all; nothing here can fail or allocate."""
        for variable, value in self.values:
            variable.commit(value)


@explained
@absent_members("tf.keras.optimizers.Optimizer")
@refused_members("tf.keras.optimizers.Optimizer", "from_config")
class Optimizer(Averaging):
    """Base of the optimizers; a subclass names its slots and gives the rule in `update`.

    Args:
        learning_rate: The size of a step, a number >= 0.
        weight_decay: The part of each weight, times the learning rate, that a step takes away;
            None: none.
        clipnorm: The largest L2 norm of each gradient; None: any.
        clipvalue: The largest absolute value in a gradient; None: any.
        global_clipnorm: The largest L2 norm of all gradients together; None: any.
        use_ema: Whether to keep a moving average of each weight, which it has at the end of `fit`.
        ema_momentum: The part of the average that a step leaves in it, in [0, 1].
        ema_overwrite_frequency: After so many steps the weights become their averages; None: never.
        name: What messages call it; None: the class's name in lower case.

    Attributes:
        elementwise: Whether `update` treats each element by itself. A recorded step then updates
            all variables of one dtype as one vector. A subclass that says so must keep to it; one
            that overrides `update` says so again.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([1.0, 2.0])
        >>> mr.optim.SGD(learning_rate=3.0).apply_gradients([(mr.constant([0.1, 0.1]), v)])
        >>> v.numpy()
        array([0.7, 1.7], dtype=float32)
    """

    _never_called = _overrides.OPTIMIZER
    _for_itself = _overrides.OPTIMIZER_ITSELF
    elementwise: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """See to it that a class says `elementwise` of its own rule, not of one it inherited."""
        super().__init_subclass__(**kwargs)
        for owner in cls.__mro__:
            if "elementwise" in vars(owner):
                return
            if "update" in vars(owner):
                cls.elementwise = False
                return

    def __init__(
        self,
        learning_rate: float,
        *,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
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
        rate = check_number("learning_rate", learning_rate)
        super().__init__(name, use_ema, ema_momentum, ema_overwrite_frequency)
        with name_scope(""):  # As Keras' objects, it has names of its own.
            self._learning_rate = Variable(
                rate, trainable=False, name="learning_rate", dtype=ops.floatx()
            )
            self._iterations = Variable(
                0,
                trainable=False,
                name="iterations",
                dtype=ops.int64,
                aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            )
        self._warned: set[str] = set()

    @property
    def learning_rate(self) -> Variable:
        """The size of a step: a variable, which may be set to a number between steps."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._learning_rate.assign(check_number("learning_rate", value))

    @property
    def iterations(self) -> Variable:
        """The number of steps taken, an int64 variable."""
        return self._iterations

    @property
    def variables(self) -> list[Variable]:
        """The step count, the learning rate, and the slots of every variable."""
        slots = [slot for _, each in self._slots.values() for slot in each]
        return [self._iterations, self._learning_rate, *slots]

    def update(
        self,
        gradient: Tensor,
        value: Tensor,
        slots: tuple[Tensor, ...],
        learning_rate: Tensor,
        step: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the new value of a variable and of its slots; it changes nothing.

        Args:
            gradient: The gradient, of the variable's shape and dtype.
            value: The variable's value.
            slots: The values of `slot_names`, each of the variable's shape and dtype.
            learning_rate: A scalar of the variable's dtype.
            step: The number of this step, from 1, a scalar of the variable's dtype.
        """
        raise NotImplementedError(
            f"The optimizer {type(self).__name__} has no `update`. Define `update(self, gradient, "
            "value, slots, learning_rate, step)` that returns the new value and the new slots."
        )

    def pack(self, variables: Sequence[Variable]) -> None:
        """Bring variables together on every replica, as a recorded step updates them.

        Args:
            variables: The variables that are to be trained.

        Raises:
            ResourceExhaustedError: A device has no room for them beside where they are now.
        """
        if not self.elementwise:
            return
        for replica in range(self._strategy.num_replicas_in_sync):
            with self._strategy.replica_scope(replica):
                copies = [_copy(each, replica) for each in variables]
                for places in packing_groups(copies):
                    pack([copies[i] for i in places])

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> None:
        """Take one step: sum the replicas' gradients, clip, update every copy of each variable.

        Called in a replica's context it waits for the other replicas. Called outside all scopes
        it takes the gradients as they are.

        Args:
            grads_and_vars: Pairs of gradient and variable. A gradient that is None, because the
                loss does not depend on the variable, leaves it alone.

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
        kept = self._with_gradients(pairs)
        variables = [variable for _, variable in kept]
        gradients = [adopt(gradient, variable.dtype) for gradient, variable in kept]
        batch = global_batch()
        if batch is not None:
            gradients = _by_examples(gradients, batch, context.replica_id_in_sync_group)
        context.merge_call(self._sum_and_apply, (variables, gradients))

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
        known = [variable for variable, _ in self._slots.values()]
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
        self, strategy: Strategy, variables: list[Variable], gradients: list[Any]
    ) -> None:
        self.prepare(variables, strategy.sum_gradients(variables, gradients)).commit()

    def prepare(self, variables: Sequence[Variable], gradients: Any) -> Update:
        """Return one step's new values, on every replica, from gradients that are reduced.

        Args:
            variables: The variables to update.
            gradients: For each the gradient, equal on all replicas: per-replica or plain, in a
                list; or as `Strategy.sum_gradients` returns them.

        Raises:
            ValueError: A gradient has another shape or dtype than its variable, or that was made in
                another strategy's scope than this optimizer.
            ResourceExhaustedError: A device has no room for the new values.
        """
        replicas = range(self._strategy.num_replicas_in_sync)
        packed = [_of_replica(gradients, replica) for replica in replicas]
        for i, variable in enumerate(variables):
            spec = packed[0].spec(i)
            if spec != (variable.shape, variable.dtype):
                raise ValueError(
                    "A gradient has the shape and dtype of its variable. Received: "
                    f"{spec.shape} {spec.dtype.name} for {variable.name} of {variable.shape} "
                    f"{variable.dtype.name}."
                )
        known = self.slots()
        recorder = active_recorder()
        if recorder is not None:
            recorder.on_failure(lambda: self.restore_slots(known))
        values: list[tuple[Target, Tensor]] = []
        try:
            self.build(variables)
            with only():
                if recorder is not None and self._strategy.shares_memory:
                    values = self._updates_of_all(variables, packed[0])
                else:
                    for replica in replicas:
                        with self._strategy.replica_scope(replica):
                            values += self._updates(replica, variables, packed[replica])
        except BaseException:
            self.restore_slots(known)  # There is no step, so its new slots take no memory.
            raise
        return Update(tuple(values))

    def _updates_of_all(
        self, variables: Sequence[Variable], gradients: Buckets
    ) -> list[tuple[Target, Tensor]]:
        """Return one replica's new values for it and, as copies, for all others.

        In one memory a copy costs less than to compute the same again. The gradients, the
        variables and the slots are equal on all replicas, and so are the results.
        """
        with self._strategy.replica_scope(0):
            updates = self._updates(0, variables, gradients)
        values = list(updates)
        for replica, device in enumerate(self._strategy.devices[1:], start=1):
            copies = [each for _, targets in self._units(replica, variables) for each in targets]
            targets = [_copy(self._iterations, replica), *copies]
            for target, (_, value) in zip(targets, updates, strict=True):
                values.append((target, value.copy_to(device)))
        return values

    def _units(
        self, replica: int, variables: Sequence[Variable]
    ) -> list[tuple[list[int], Sequence[Target]]]:
        """Return what the rule updates in one call: a variable, or in a program all of a dtype.

        Each is the places of its variables, and one replica's copy of them and of their slots.
        """
        copies = [
            [_copy(each, replica) for each in (variable, *self._slots_of(variable))]
            for variable in variables
        ]
        if not self.elementwise or active_recorder() is None:
            return [([i], each) for i, each in enumerate(copies)]
        units: list[tuple[list[int], Sequence[Target]]] = []
        with recorded_by(None):
            for places in packing_groups([each[0] for each in copies]):
                columns = zip(*(copies[i] for i in places), strict=True)
                units.append((places, [pack(column) for column in columns]))
        return units

    def _updates(
        self, replica: int, variables: Sequence[Variable], gradients: Buckets
    ) -> list[tuple[Target, Tensor]]:
        """Return the new values of one replica's copies."""
        iterations = _copy(self._iterations, replica)
        with devices.device(iterations.device):
            step = iterations.read_value() + 1
        rate = _copy(self._learning_rate, replica).read_value()
        updates: list[tuple[Target, Tensor]] = [(iterations, step)]
        bounds = self.clipnorm, self.clipvalue, self.global_clipnorm
        gradients = clipped(gradients, *bounds)
        scalars: dict[tuple[str, DType], tuple[Tensor, Tensor]] = {}  # Rate and step, made once.
        for places, copies in self._units(replica, variables):
            flat = isinstance(copies[0], FlatVariable)
            gradient = gradients.vector(places) if flat else gradients[places[0]]
            value, *slots = (each.read_value() for each in copies)
            with devices.device(copies[0].device):
                kind = copies[0].device, value.dtype
                if kind not in scalars:
                    scalars[kind] = ops.cast(rate, value.dtype), ops.cast(step, value.dtype)
                local_rate, local_step = scalars[kind]
                if self.weight_decay:
                    value = value - value * (local_rate * self.weight_decay)
                average = slots.pop() if self.use_ema else None
                new_value, new_slots = self.update(
                    gradient, value, tuple(slots), local_rate, local_step
                )
            results = [new_value, *new_slots]
            if [each.spec for each in results] != [value.spec] * (1 + len(slots)):
                raise ValueError(
                    f"{type(self).__name__}.update returns the new value and {len(slots)} new "
                    f"slots, each of the variable's shape and dtype. For {copies[0].name}, which "
                    f"has {value.spec}, received: {[each.spec for each in results]}."
                )
            if average is not None:
                with devices.device(copies[0].device):
                    results[0], average = self._averaged(new_value, average, step, local_step)
                results.append(average)
            updates += zip(copies, results, strict=True)
        return updates


def _copy(variable: Variable, replica: int) -> Any:
    """Return the copy of a variable that one replica has."""
    return variable.copies[replica] if isinstance(variable, DistributedVariable) else variable


def _by_examples(gradients: list[Any], batch: GlobalBatch, replica: int) -> list[Any]:
    """Return a shard's gradients as they count in the sum: nothing where it has no examples."""
    share = batch.share(replica)
    if share == 1.0:
        return gradients
    with only():  # The sum is that of the optimizer, and nothing to be differentiated.
        if batch.is_empty(replica):
            return [ops.zeros(each.shape, each.dtype) for each in gradients]
        return [each * share for each in gradients]


def _of_replica(gradients: Any, replica: int) -> Buckets:
    """Return one replica's part of what `prepare` is given."""
    if isinstance(gradients, DistributedValues):
        gradients = gradients.values[replica]
    if isinstance(gradients, Buckets):
        return gradients
    return Buckets(
        each.values[replica] if isinstance(each, DistributedValues) else each for each in gradients
    )


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
