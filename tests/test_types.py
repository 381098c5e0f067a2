"""The types of arguments, as they show at run time; tests/typing/ has what type checkers say."""

import inspect
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import stubs
from extras import WRAPPERS

import mirrored as mr
from mirrored._late import LISTS

# Parameters of public functions that may be `Any`, as "module:Class.method.parameter", by reasons.
UNTYPED = {
    "a structure of anything": """
        keras_functions.tree:* ops.structures:* autodiff.tape:* control_flow.*:*.loop_vars
        control_flow.*:*.shape_invariants control_flow.*:*.branch_fns
        control_flow.*:*.fn_output_signature control_flow.*:*.dtype *.Tout data.*:* distribute.*:*
        training.cloning:clone_model.input_tensors
        training.files.checkpoint:Checkpoint.__init__.root
    """,
    "data of any kind": """
        training.model:Model.*.x training.model:Model.*.y training.model:Model.*.y_pred
        training.model:Model.*.sample_weight training.model:Model.*.data
        training.model:Model.fit.validation_data training.utilities:*.x training.utilities:*.y
        training.utilities:*.data training.utilities:*.sample_weight
        training.replica_comparison:compare_replicas.* training.mixing_operations:* layers.*:*.data
    """,
    "structures of names and objects": """
        training.model:Model.compile.* training.model:Model.__init__.*
        training.model:Model.*.input_shape training.sequential:Sequential.fitted_shape.input_shape
        training.model:Model.*.input_dtype training.model:Model.fed_dtypes.dtypes
        training.model:Model.export.input_signature training.model:Model.compute_loss.*
        training.model:Model.compute_metrics.* layers.core:Lambda.__init__.output_shape
    """,
    "subclasses say which kind they take": """
        *.compute_mask.* *.build.* *.compute_output_shape.* *.check_input_shape.* *.call.*
        *.per_example.* *.statistics.* *.accumulate.* *.finished.* *.shard.* *.as_outputs.*
        *:Regularizer.__call__.x *:LearningRateSchedule.__call__.step optim.optimizer:*.prepare.*
    """,
    "any object, of which the function finds out the kind": """
        *:serialize.* *:get.identifier serialization.*:* *is_tensor.x *is_symbolic_tensor.tensor
        *get_static_value.tensor ops.spec:* ops.tensor_shape:* ops.static_assertions:*
        numpy_functions.*:isscalar.num *get_item.key *Callback.set_model.model *:CallbackList.*
        layers.wrapper:* training.sequential:Sequential.add.layer *.add_loss.loss
        layers.policy:*
    """,
    "a tensor, a function of none, or variables in any structure": """
        optim.optimizer:Optimizer.minimize.*
    """,
    "an object of another library": "*from_dlpack.dlcapsule *einsum.optimize",
    "made by the library alone": """
        _symbolic:* graph.*:* program.*:* ops.tensor:* autodiff.recording:*
    """,
    "TensorFlow 1's nodes, feeds and fetches": "compat.v1.*:*",
}


def public_functions() -> Iterator[tuple[str, Any]]:
    """Yield the functions that users call, with methods and constructors, by "module:name"."""
    list(stubs.modules())  # Loads them.
    shown = {*dir(mr), "autodiff", "compat"}
    seen: set[object] = set()
    for module, names in LISTS.items():
        if module == WRAPPERS or "._" in module or not {*module.split(".")[1:2]} <= shown:
            continue
        for public in names:
            value = getattr(sys.modules[module], public)
            members = {public: value}
            for base in value.__mro__ if inspect.isclass(value) else ():
                members |= {f"{base.__name__}.{name}": item for name, item in vars(base).items()}
            for name, member in members.items():
                function = inspect.unwrap(getattr(member, "__func__", member))
                last = name.rpartition(".")[2]
                if (
                    inspect.isfunction(function)
                    and function.__module__.startswith("mirrored.")
                    and (last[0] != "_" or last in ("__init__", "__call__"))
                    and function.__code__ not in seen
                ):
                    seen.add(function.__code__)
                    yield f"{function.__module__.removeprefix('mirrored.')}:{name}", function


def untyped() -> list[str]:
    """Return the parameters that are `Any`, of public functions."""
    return [
        f"{name}.{parameter}"
        for name, function in public_functions()
        for parameter, kind in function.__annotations__.items()
        if kind in (Any, Any | None, "Any") and parameter in arguments_of(function)
    ]


def arguments_of(function: Any) -> tuple[str, ...]:
    """Return the parameters of a function but for *args and **kwargs."""
    code = function.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def test_public_parameters_have_types() -> None:
    names = untyped()
    patterns = [pattern for text in UNTYPED.values() for pattern in text.split()]
    missing = [name for name in names if not any(fnmatch(name, row) for row in patterns)]
    assert missing == [], "annotate these with a type of mirrored/types, or say in UNTYPED why not"
    stale = [row for row in patterns if not any(fnmatch(name, row) for name in names)]
    assert stale == []


def test_signatures_show_the_types_by_their_names() -> None:
    shown = str(inspect.signature(mr.zeros))
    assert "shape: mirrored.types.ShapeLike" in shown
    assert "mirrored.types.DTypeLike" in shown
    nest = mr.types.Nest[mr.types.TensorLike]
    assert repr(nest) == "mirrored.types.Nest[mirrored.types.TensorLike]"
