"""Refuses methods of subclasses that nothing would call, when the class is defined.

Keras and TensorFlow call them; a program that relies on that must not run on without a word. What
becomes called leaves its table below.
"""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from mirrored._arguments import Explained, is_ours

_STEPS = "Override `train_step`, `test_step` or `predict_step`."
_EVALUATE = "`fit` validates without it. Use `on_test_begin` and `on_test_end` of a Callback."
_SPEC = "Define `compute_output_spec`, or `compute_output_shape(self, input_shape)`."
_METRICS = "Put metrics into attributes of the layer, or override `metrics` of the model."
_FROZEN = "Set `trainable` to False on layers that training must not change."
_DECAY = "Pass `weight_decay`, and call `exclude_from_weight_decay`."
_RULE = (
    "Define `update_step(self, gradient, variable, learning_rate)`, as in Keras, or `slot_names` "
    "and `update(self, gradient, value, slots, learning_rate, step)`, which returns the new "
    "value and the new slots; the base class sums, clips and writes."
)
_ELEMENTS = "Create elements with Dataset.from_generator, and change them with `map` and `filter`."
_DISTRIBUTED = "Use MirroredStrategy as it is; how it sums is a subclass of CrossDeviceOps."


class Rules(NamedTuple):
    """Which overrides of a base class's members are refused.

    Attributes:
        never_called: What to write instead, by the name of a method, property or attribute.
        ours: Public methods that are none of Keras': a base class calls its own.
        beside: The method that a class has to define too for one of these to be called.
        elsewhere: The library in which they are called.
    """

    never_called: Mapping[str, str] = {}
    ours: frozenset[str] = frozenset()
    beside: Mapping[str, str] = {}
    elsewhere: str = "Keras"


LAYER = Rules(
    {
        "symbolic_call": _SPEC,
        "input_spec": "Define `check_input_shape(self, input_shape)`, which raises ValueError.",
        "losses": "Call `add_loss` in `call`, or pass a `regularizer` to `add_weight`.",
        "metrics": _METRICS,
        **dict.fromkeys(("trainable", "weights", "variables"), _FROZEN),
        **dict.fromkeys(("trainable_weights", "trainable_variables"), _FROZEN),
        **dict.fromkeys(("non_trainable_weights", "non_trainable_variables"), _FROZEN),
    },
    ours=frozenset(("as_outputs",)),
)
MODEL = Rules(
    {
        **{name: advice for name, advice in LAYER.never_called.items() if name != "metrics"},
        **dict.fromkeys(
            ("make_train_function", "make_test_function", "make_predict_function"), _STEPS
        ),
        "evaluate": _EVALUATE,
    },
    ours=LAYER.ours
    | {"build_for", "fed_dtypes", "fitted_shape", "output_shapes_for", "required_compilation"},
)
OPTIMIZER = Rules(
    {
        **dict.fromkeys(("apply_gradients", "apply"), _RULE),
        **dict.fromkeys(("assign", "assign_add", "assign_sub"), _RULE),
        **dict.fromkeys(("_apply_weight_decay", "_use_weight_decay"), _DECAY),
        **dict.fromkeys(("_backend_update_step", "_clip_gradients"), _RULE),
        "scale_loss": "Give `loss_scale_factor`.",
        "lr": "Use `learning_rate`, its later name.",
    },
    ours=frozenset(("prepare", "rule", "slots", "within")),
    beside=dict.fromkeys(("assign", "assign_add", "assign_sub"), "update_step"),
)
DATASET = Rules(
    dict.fromkeys(("__iter__", "__len__", "cardinality", "element_spec", "_inputs"), _ELEMENTS),
    elsewhere="TensorFlow",
)
STRATEGY = Rules(
    dict.fromkeys(("extended", "gather", "experimental_distribute_dataset"), _DISTRIBUTED),
    elsewhere="TensorFlow",
)
STRATEGY_EXTENDED = Rules(
    {
        **dict.fromkeys(("reduce_to", "batch_reduce_to", "update"), _DISTRIBUTED),
        **dict.fromkeys(("_reduce_to", "_batch_reduce_to", "_update"), _DISTRIBUTED),
        **dict.fromkeys(("_create_variable", "_call_for_each_replica"), _DISTRIBUTED),
        **dict.fromkeys(("_local_results", "_gather_to", "_make_dataset_iterator"), _DISTRIBUTED),
    },
    elsewhere="TensorFlow",
)
CROSS_DEVICE_OPS = Rules(
    {
        "batch_reduce": "Define `batch_reduce_implementation`.",
        "broadcast": "Define `broadcast_implementation`.",
        "_gather_implementation": "Define `gather_implementation`.",
        "_all_reduce": "Define `batch_all_reduce_implementation`.",
    },
    elsewhere="TensorFlow",
)
ALL_REDUCES = Rules(
    {
        **CROSS_DEVICE_OPS.never_called,
        **dict.fromkeys(
            ("reduce_implementation", "batch_reduce_implementation"),
            "Define it in a direct subclass of CrossDeviceOps, or define "
            "`batch_all_reduce_implementation` here, which all all-reduces call.",
        ),
    },
    elsewhere="TensorFlow",
    beside=dict.fromkeys(
        ("reduce_implementation", "batch_reduce_implementation"), "batch_all_reduce_implementation"
    ),
)
LOSS = Rules(ours=frozenset(("per_example", "shard")))
QUOTIENT = Rules(ours=frozenset(("accumulate", "finished", "set_totals")))

_LEAVES = frozenset((str, int, float, bool, type(None)))  # Of which nothing is noted.


def any_parameters(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as it is; to type checkers, a subclass may define it with any parameters.

    Args:
        method: The method. A method of ``*args: Any, **kwargs: Any`` alone does not need this.
    """
    return method


class Subclassable(Explained):
    """Base of the classes that users subclass: refuses overrides by the rules in `__overrides__`.

    It also refuses names of its private methods and of the public ones in `ours`, which are none
    of Keras': they would be called in place of its own.

    What a subclass inherits from a mixin counts, and so does what is assigned to an instance.
    """

    __overrides__: ClassVar[Rules] = Rules()
    __declaring__: ClassVar[type["Subclassable"]]  # Whose rules these are; set below.
    __tracker__: Any = None  # What notes the order of attributes, where a subclass has one.
    # The attributes that have one value per replica, and what assigns these.
    __replica_attributes__: Any = None
    __assign_attribute__: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError where the class overrides what nothing calls."""
        super().__init_subclass__(**kwargs)
        if "__overrides__" in vars(cls):
            cls.__declaring__ = cls
        check_overrides(cls)

    if not TYPE_CHECKING:  # It would tell type checkers that every attribute can be set.

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self.__overrides__.never_called and value is not None:
                # Properties say themselves whether they can be set.
                if not hasattr(getattr(type(self), name, None), "__set__"):
                    raise _refusal(type(self), name, "an assignment on an instance")
            elif _is_taken(name, self.__declaring__) and not callable(value):
                raise _taken(type(self), name, "an assignment on an instance")
            tracker, is_leaf = self.__tracker__, type(value) in _LEAVES
            if tracker is not None and not is_leaf:
                value = tracker.track(value)
            is_plain = is_leaf and not self.__replica_attributes__
            store = (None if is_plain else self.__assign_attribute__) or super().__setattr__
            try:
                store(name, value)
            except AttributeError:
                own = getattr(type(self), name, None)
                if not isinstance(own, property) or own.fset is not None:
                    raise
                raise AttributeError(
                    f"`{name}` of {type(self).__name__} is computed and cannot be set. Received: "
                    "an assignment to the attribute of an instance. Choose another name."
                ) from None
            if tracker is not None and tracker.notify is not None:
                tracker.notify()


Subclassable.__declaring__ = Subclassable


def check_overrides(cls: type[Subclassable]) -> None:
    """Raise TypeError where a class overrides a method that nothing would call, or one of ours.

    Args:
        cls: The class. What was assigned to it since it was defined counts.

    Raises:
        TypeError: It does; the text says what to write instead. Or it happens to have a method
            whose private name its base class uses.

    Example:
        >>> import mirrored as mr
        >>> class Trainer(mr.Model):
        ...     def evaluate(self, x):
        ...         return {}
        Traceback (most recent call last):
        TypeError: `evaluate` of Trainer: mirrored does not use it as Keras does. Received: ...
    """
    base: Any = cls.__declaring__  # As a class it has a hash, which type checkers do not see.
    rules = base.__overrides__
    owners = cls.__mro__[: cls.__mro__.index(base)]
    for owner in owners:
        for name, value in vars(owner).items():
            if _is_taken(name, base) and not is_ours(owner):
                raise _taken(cls, name, f"its definition in class {owner.__qualname__}")
            if name not in rules.never_called or value is None:
                continue
            beside = rules.beside.get(name)
            if not any(beside in vars(ancestor) for ancestor in owners):
                raise _refusal(cls, name, f"its definition in class {owner.__qualname__}")


@functools.lru_cache(maxsize=1024)  # It is asked with each assignment to an attribute.
def _is_taken(name: str, base: type[Subclassable]) -> bool:
    """Return whether a name is that of a method or property that a base class alone defines."""
    rules = base.__overrides__
    # Python's are mangled or have two underscores, and IPython's such as `_repr_html_` end in one.
    private = name.startswith("_") and "__" not in name and not name.endswith("_")
    if name not in rules.ours and (not private or name in rules.never_called):
        return False
    own = getattr(base, name, None)
    return callable(own) or isinstance(own, property)


def _taken(cls: type[Subclassable], name: str, received: str) -> TypeError:
    return TypeError(
        f"`{name}` of {cls.__name__}: mirrored's {cls.__declaring__.__name__} has a method of "
        f"that name, which it calls itself. Received: {received}. Choose another name."
    )


def _refusal(cls: type[Subclassable], name: str, received: str) -> TypeError:
    rules = cls.__overrides__
    return TypeError(
        f"`{name}` of {cls.__name__}: mirrored does not use it as {rules.elsewhere} does. "
        f"Received: {received}. {rules.never_called[name]}"
    )
