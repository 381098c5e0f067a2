"""What a model computes as a file for other programs: its inputs and outputs with their names.

How operations become what such a file is made of is the business of `mirrored.export`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mirrored import _nest
from mirrored._files import as_path
from mirrored._naming import free_name
from mirrored._types import PathLike
from mirrored.export.node_writer import OPSET
from mirrored.export.onnx_file import export_function
from mirrored.export.recordings import GraphInput
from mirrored.graph import SymbolicTensor
from mirrored.layers import added_losses
from mirrored.layers.layer import unbuilt
from mirrored.layers.shapes import map_shapes
from mirrored.ops import Tensor
from mirrored.ops.conversion import convert_to_tensor, is_tensor
from mirrored.ops.spec import DType, TensorSpec, as_dtype
from mirrored.training.loop import check_context

if TYPE_CHECKING:
    from mirrored.training.model import Model

_OTHERS = ("tf_saved_model", "openvino", "litert", "torch")  # Keras' other formats.


def export_model(
    model: "Model",
    filepath: PathLike,
    format: str | None,
    verbose: bool | None,
    input_signature: Any,
    options: dict[str, Any],
) -> None:
    """Write a model; `Model.export` says what the arguments mean."""
    check_context("export")
    path = as_path(filepath, "file of ONNX")
    _check_format(path, format)
    opset = options.pop("opset_version", None)
    if options:
        raise TypeError(f"export() got an unexpected keyword argument {next(iter(options))!r}")
    if opset not in (None, OPSET):
        raise ValueError(
            f"Files must have ONNX's opset {OPSET}. Received: opset_version={opset!r}."
        )
    missing = unbuilt(model)
    if missing or not model.built:
        raise ValueError(
            "The model provided has not yet been built. It must be built before export. Received: "
            f"the model {model.name!r}"
            + (f", without the weights of {missing}." if missing else ".")
        )
    arguments = _arguments(model, input_signature)
    inputs = _named_inputs(model, arguments)
    structures: list[Any] = []

    def call(tensors: list[Tensor]) -> list[Tensor]:
        with added_losses.ignoring_losses():
            outputs = model(*_nest.pack_like(arguments, tensors), training=False)
        structures.append(outputs)
        return [convert_to_tensor(output) for output in _nest.flatten(outputs)]

    export_function(call, inputs, lambda: _output_names(model, structures[0]), path, model.name)
    if verbose is None or verbose:
        print(f"Saved artifact at '{path}'.")


def _check_format(path: str, format: str | None) -> None:
    if format == "onnx" or (format is None and path.lower().endswith(".onnx")):
        return
    if format is None or format in _OTHERS:
        raise NotImplementedError(
            f"ONNX is the only export format. Received: format={format!r}, filepath={path!r}. "
            "Pass format='onnx', or a file name that ends in '.onnx'."
        )
    raise ValueError(f"Unrecognized format={format}. Supported formats are: ['onnx'].")


@dataclass(frozen=True, slots=True)
class _Input:
    """What an input is: a spec that is no tuple, so that structures of them have leaves."""

    shape: tuple[int | None, ...]
    dtype: DType
    name: str | None = None


def _arguments(model: "Model", signature: Any) -> list[Any]:
    """Return what a call is given, in its structure."""
    if signature is not None:
        several = isinstance(signature, list | tuple) and not isinstance(signature, TensorSpec)
        return [_described(spec) for spec in (signature if several else [signature])]
    if model.__state__.inputs:
        return [_described(model.input)]
    if model.__call_form__.takes_more:
        raise ValueError(
            "A model whose `call` takes several arguments needs one spec per argument for its "
            f"export. Received: the model {model.name!r} without an `input_signature`."
        )
    try:
        shapes = model.input_shape
    except AttributeError:
        raise ValueError(
            "The model provided has never called. It must be called at least once before export. "
            f"Received: the model {model.name!r}. Or pass an `input_signature`."
        ) from None
    dtype = model.__state__.input_dtype or model.compute_dtype
    return [map_shapes(lambda shape: _Input(tuple(shape), dtype), shapes)]


def _described(value: Any) -> Any:
    """Return the inputs in a structure, with any number of examples where a tensor stands for them.

    Raises:
        TypeError: Something in it is no input.
        ValueError: One has any number of axes.
    """
    if isinstance(value, dict):
        return {key: _described(part) for key, part in value.items()}
    if isinstance(value, list | tuple) and not isinstance(value, TensorSpec):
        return [_described(part) for part in value]
    if isinstance(value, SymbolicTensor):
        return _Input(tuple(value._shape), value._dtype)
    if is_tensor(value):
        return _Input((None, *value.shape[1:]), value.dtype)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(value, TensorSpec) and shape is None:
        raise ValueError(f"An input must have a known number of axes. Received: {value!r}.")
    if shape is None or dtype is None:
        raise TypeError(
            "An input must be described by a TensorSpec, a placeholder or a tensor. Received: "
            f"{value!r} (of type {type(value).__name__})."
        )
    return _Input(tuple(shape), as_dtype(dtype), getattr(value, "name", None))


def _named_inputs(model: "Model", arguments: list[Any]) -> list[GraphInput]:
    """Return the inputs with a name each, and names for the sizes that are not known."""
    inputs: list[_Input] = _nest.flatten(arguments)
    own = [] if model.__state__.graph is None else model.__state__.graph.layout.names
    first = arguments[0]
    if isinstance(first, dict) and len(first) == len(inputs):
        own = [str(key) for key in _nest.sorted_keys(first)]
    if not own:
        own = [tensor.node.callee.name for tensor in model.__state__.inputs]
    if len(own) != len(inputs):
        own = [f"input_{place}" for place in range(len(inputs))]
    named: dict[str, GraphInput] = {}
    for wish, spec in zip(own, inputs, strict=True):
        name = free_name(spec.name or wish, named, len(named))
        sizes = tuple(
            ("batch" if axis == 0 else f"{name}_axis_{axis}") if size is None else size
            for axis, size in enumerate(spec.shape)
        )
        named[name] = GraphInput(name, sizes, spec.dtype)
    return list(named.values())


def _output_names(model: "Model", outputs: Any) -> list[str]:
    """Return what the outputs are called: by the keys of a dict, by layers, or by numbers."""
    flat = _nest.flatten(outputs)
    if isinstance(outputs, dict) and len(outputs) == len(flat):
        return [str(key) for key in _nest.sorted_keys(outputs)]
    names = model.output_names
    return names if len(names) == len(flat) else [f"output_{place}" for place in range(len(flat))]
