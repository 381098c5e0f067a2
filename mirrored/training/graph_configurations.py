"""The graphs of functional models as configurations: layers, and the calls that join them.

A call says which layer's which call gave each of its inputs; calls are counted as Keras counts.
"""

import inspect
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from mirrored import _nest
from mirrored.graph import Node, SymbolicTensor, placeholders
from mirrored.graph.operations import Operation, get_item, keras_name, make_node
from mirrored.graph.symbolic_tensor import Span
from mirrored.layers import Layer
from mirrored.serialization.class_names import public_operation
from mirrored.serialization.configs import (
    deserialize_keras_object,
    failures_are_errors,
    in_memory,
    serialize_keras_object,
)
from mirrored.training import operation_classes as classes
from mirrored.training.model_state import is_model

_TENSOR = "__keras_tensor__"
# Layers whose calls have no default mode in Keras.
_QUIET = ("BatchNormalization", "Lambda", "TimeDistributed")


class _Numbers:
    """The numbers of the calls in a graph, among those of the same layer."""

    def __init__(self, callees: list[Any], nodes: list[Node]) -> None:
        own = {id(node) for node in nodes}
        self._nodes = {
            id(node): number
            for callee in callees
            for number, node in enumerate(call for call in callee._inbound_nodes if id(call) in own)
        }

    def of(self, tensor: SymbolicTensor) -> list[Any]:
        """Return the layer's name, the number of its call, and that of the output."""
        return [tensor.node.callee.name, self._nodes[id(tensor.node)], tensor.index]

    def at_the_ends(self, tensor: SymbolicTensor) -> list[Any]:
        """Return the same as Keras says it of a model's inputs and outputs."""
        name, number, index = self.of(tensor)
        # A functional model within has a call of its own, which is counted here alone.
        return [name, number + 1 if _is_graph(tensor.node.callee) else number, index]


def _is_graph(callee: Any) -> bool:
    return is_model(callee) and callee.__state__.graph is not None


def configuration_of(model: Any) -> dict[str, Any]:
    """Return the configuration of a functional model.

    Args:
        model: The model.

    Raises:
        NotImplementedError: A layer does not say what it is made of, or an operation is none of
            `keras.ops`.
    """
    order = model.__state__.graph.part.order
    numbers = _Numbers(order.callees, order.nodes)
    own = {id(node) for node in order.nodes}
    layers = []
    for callee in order.callees:
        nodes = [node for node in callee._inbound_nodes if id(node) in own and node.inputs]
        if isinstance(callee, Layer):
            config = serialize_keras_object(callee)
            calls = [(node.args, _as_noted(callee, node)) for node in nodes]
        else:
            config, call = _of_operation(callee, nodes[0])
            calls = [call]
        written = [
            {
                "args": [_of_arguments(argument, numbers) for argument in args],
                "kwargs": _of_arguments(kwargs, numbers),
            }
            for args, kwargs in calls
        ]
        layers.append({**config, "name": callee.name, "inbound_nodes": written})
    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": layers,
        "input_layers": _nest.map_structure(numbers.at_the_ends, model.input),
        "output_layers": _nest.map_structure(numbers.at_the_ends, model.output),
    }


def _as_noted(layer: Layer, node: Node) -> dict[str, Any]:
    """Return the arguments by name of a call as Keras notes them.

    Of a call on one tensor alone that is not cast these are the mode and the mask too, where the
    layer takes them. A mask that the tensor carries is left out, as Keras finds it by itself then:
    one that is said to be None it would not look for.
    """
    value = node.args[0] if len(node.args) == 1 else None
    of_layers = is_model(layer) and bool(layer._layer_chain)
    is_tensor = isinstance(value, SymbolicTensor) and value._dtype == layer.__state__.input_dtype
    if value is None or not (_is_graph(layer) or (is_tensor and not node.kwargs)):
        return node.kwargs
    takes_mask = of_layers or "mask" in inspect.signature(layer.call).parameters
    carried = any(getattr(leaf, "_keras_mask", None) is not None for leaf in _nest.flatten(value))
    says_none = takes_mask and not carried
    mask = {"mask": _nest.map_structure(lambda _: None, value)} if says_none else {}
    mode = layer.__call_form__.default_mode
    is_quiet = mode is None or type(layer).__name__ in _QUIET
    return {**({} if is_quiet else {"training": mode}), **mask, **node.kwargs}


def _of_arguments(structure: Any, numbers: _Numbers) -> Any:
    def of_leaf(leaf: Any) -> Any:
        if not isinstance(leaf, SymbolicTensor):
            return leaf
        config = {"shape": list(leaf._shape), "dtype": leaf._dtype.name}
        return {"class_name": _TENSOR, "config": {**config, "keras_history": numbers.of(leaf)}}

    return serialize_keras_object(_nest.map_structure(of_leaf, structure))


# Operations.


def _of_operation(operation: Operation, node: Node) -> tuple[dict[str, Any], Any]:
    """Return the configuration of an operation's class, and the arguments of its call."""
    if in_memory():
        return {"operation": operation.function}, (node.args, node.kwargs)
    form = _as_keras(operation, node)
    if form is None:
        raise NotImplementedError(
            f"The operation {operation.name!r} of a functional model has no configuration: it is "
            "none of `keras.ops` and of Python's operators. Call these, or put it into the `call` "
            "of a layer."
        )
    name, call, settings = form
    module, kind = classes.class_of(name)
    config = {
        "module": module,
        "class_name": kind,
        "config": {"name": operation.name, **serialize_keras_object(settings)},
        "registered_name": kind,
    }
    return config, call


def _as_keras(operation: Operation, node: Node) -> tuple[str, Any, dict[str, Any]] | None:
    """Return the name in `keras.ops`, the arguments of the call, and the settings."""
    function, args, kwargs = operation.function, node.args, dict(node.kwargs)
    name = keras_name(function)
    if name == "get_item":
        index = args[1:] if function is get_item else kwargs["index"]
        parts = [slice(*part) if isinstance(part, Span) else part for part in index]
        return name, ([args[0], parts[0] if len(parts) == 1 else parts], {}), {}
    keras = public_operation(name)
    if keras is None or name in classes.WITHOUT_CLASS.split():
        return None
    parameters = inspect.signature(keras).parameters
    if keras is not function:
        # One of this library's own, which means the same where there is nothing to choose.
        kwargs = {key: value for key, value in kwargs.items() if value is not False}
        choice = any(parameter.default is not parameter.empty for parameter in parameters.values())
        if kwargs or (choice and name != "transpose") or len(args) != len(parameters):
            return None
    bound = inspect.signature(keras).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = {
        key: value
        for key, value in bound.arguments.items()
        if parameters[key].kind is not inspect.Parameter.VAR_KEYWORD or value
    }
    by_position, by_name = classes.of_a_call(name)
    named_ones = {key: arguments.pop(key) for key in by_name}
    if by_position is None:
        by_position = tuple(key for key in arguments if key in classes.OF_A_CALL)
    positional: list[Any] = []
    for key in by_position:
        several = parameters[key].kind is inspect.Parameter.VAR_POSITIONAL
        positional += arguments[key] if several else [arguments[key]]
    settings = {key: value for key, value in arguments.items() if key not in by_position}
    return None if placeholders(settings) else (name, (positional, named_ones), settings)


class _Called:
    """An operation that is called as a configuration says; it makes a node."""

    def __init__(
        self, function: Any, name: str, settings: Mapping[str, Any], operation: str = ""
    ) -> None:
        self._function = function
        self._settings = settings
        self._operation = operation
        self._inbound_nodes: deque[Node] = deque()
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns, as a part of a graph."""
        if not placeholders((args, kwargs)):
            raise ValueError(f"The operation {self.name!r} is not applied to a layer's output.")
        if self._function is _item:
            result = _item(*args)
        else:
            args, settings = classes.arguments_of(self._operation, args, self._settings)
            result = make_node(self._function, args, {**kwargs, **settings})
        for tensor in _nest.flatten(result)[:1]:
            tensor.node.callee.name = self.name
            self._inbound_nodes.append(tensor.node)
        return result


def _operation(config: Mapping[str, Any]) -> _Called | None:
    """Return the operation that a configuration is of; None: it is that of a layer."""
    if callable(config.get("operation")):  # Of this process alone: JSON has no functions.
        return _Called(config["operation"], config["name"], {})
    kind = config.get("class_name")
    name = classes.function_of(config.get("module"), kind)
    if name is None:
        return None
    function = _item if name == "get_item" else public_operation(name)
    settings = config.get("config")
    if function is None or not isinstance(settings, dict):
        raise TypeError(f"`keras.ops` has no operation {kind!r}. Received: {config!r:.200}")
    taken = deserialize_keras_object({k: setting for k, setting in settings.items() if k != "name"})
    return _Called(function, config["name"], taken, name)


def _item(x: Any, key: Any) -> Any:
    return x[tuple(key) if isinstance(key, list) else key]


# From configurations to graphs.


def arguments_of_graph(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the arguments of the model that a configuration describes, with its graph drawn.

    Args:
        config: What `configuration_of` returned.
        custom_objects: Classes and functions that it may name, by these names.

    Raises:
        ValueError: Its calls lead in circles, or to what is not there.
        TypeError: It is no such configuration.
    """
    drawing = _Drawing(config["layers"], custom_objects)
    drawing.draw()
    more = {key: value for key, value in config.items() if not key.endswith("layers")}
    return {
        "inputs": drawing.ends(config["input_layers"]),
        "outputs": drawing.ends(config["output_layers"]),
        **{key: value for key, value in more.items() if key != "trainable"},
        "trainable": bool(config.get("trainable", True)),
    }


class _NotDrawnYet(Exception):
    """A call needs what another call returns, which was not made so far.

    Args:
        name: The layer's name.
        number: The number of its call.
    """

    def __init__(self, name: str, number: int) -> None:
        super().__init__(f"Layer {name!r} has no call number {number}.")
        self.call = name, number


class _Drawing:
    """Makes the layers of a graph, and then the calls, each when its inputs are there."""

    def __init__(self, layers: Any, custom_objects: Mapping[str, Any] | None) -> None:
        self._layers: dict[str, Any] = {}
        self._calls: dict[str, deque[Any]] = {}
        if not isinstance(layers, list | tuple):
            raise TypeError(f"`layers` must be a list of configurations. Received: {layers!r:.200}")
        for entry in layers:
            if not isinstance(entry, dict) or not {"name", "inbound_nodes"} <= entry.keys():
                raise TypeError(
                    "A layer of a functional model needs a `name` and `inbound_nodes`. Received: "
                    f"{entry!r:.200}"
                )
            name = entry["name"]
            if not isinstance(name, str) or not isinstance(entry["inbound_nodes"], list | tuple):
                raise TypeError(f"A layer needs a name and list of calls. Received: {entry!r:.200}")
            layer = _operation(entry)
            if layer is None:
                layer = deserialize_keras_object(entry, custom_objects=custom_objects)
            if not isinstance(layer, Layer | _Called):
                raise ValueError(
                    "Unexpected object from deserialization, expected a layer or operation, got a "
                    f"{type(layer)}"
                )
            self._layers[name] = layer
            self._calls[name] = deque(entry["inbound_nodes"])

    def draw(self) -> None:
        """Make all calls, in an order in which their inputs are there."""
        ready = deque(self._layers)
        waiting: dict[tuple[str, int], list[str]] = {}  # Layers by the call that they wait for.
        while ready:
            name = ready.popleft()
            first = len(self._layers[name]._inbound_nodes)
            needed = self._draw_calls(name)
            if needed is not None:
                waiting.setdefault(needed, []).append(name)
            for number in range(first, len(self._layers[name]._inbound_nodes)):
                ready.extend(waiting.pop((name, number), ()))
        left = [name for name, calls in self._calls.items() if calls]
        if left:
            raise ValueError(
                "Invalid Functional model configuration. The graph of the Functional model "
                "either has loops or disconnected nodes. The calls of these layers failed to "
                f"be resolved: {left}"
            )

    def _draw_calls(self, name: str) -> tuple[str, int] | None:
        """Make the next calls of a layer, and return the call that the next one waits for."""
        calls = self._calls[name]
        while calls:
            try:
                args, kwargs = self._arguments(calls[0])
            except _NotDrawnYet as error:
                return error.call
            calls.popleft()
            layer = self._layers[name]
            if (
                isinstance(layer, Layer)
                and kwargs.get("training", ...) is layer.__call_form__.default_mode
            ):
                del kwargs["training"]  # As of a call that says nothing.
            with failures_are_errors(name):
                layer(*args, **kwargs)
        return None

    def _arguments(self, call: Any) -> tuple[list[Any], dict[str, Any]]:
        if not isinstance(call, dict) or not {"args", "kwargs"} <= call.keys():
            raise TypeError(f"A call needs `args` and `kwargs`. Received: {call!r:.200}")
        args, kwargs = self._filled(call["args"]), self._filled(call["kwargs"])
        if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
            raise TypeError(
                f"A call needs a list of `args` and a dict of `kwargs`. Received: {call!r:.200}"
            )
        return list(args), kwargs

    def _filled(self, structure: Any) -> Any:
        """Return arguments with placeholders in the places of what says which they are."""
        if isinstance(structure, list | tuple):
            return [self._filled(item) for item in structure]
        if not isinstance(structure, dict):
            return structure
        if structure.get("class_name") == _TENSOR and isinstance(structure.get("config"), dict):
            return self._tensor(structure["config"].get("keras_history"))
        if "class_name" in structure and "config" in structure:
            return deserialize_keras_object(structure)
        return {key: self._filled(item) for key, item in structure.items()}

    def _tensor(self, history: Any, *, at_the_ends: bool = False) -> SymbolicTensor:
        """Return the placeholder that a layer's name and two numbers lead to."""
        if not _is_history(history) or history[0] not in self._layers:
            raise ValueError(f"Unknown layer or call in a functional model: {history!r:.200}")
        name, number, index = history
        layer = self._layers[name]
        number -= at_the_ends and _is_graph(layer)
        nodes = layer._inbound_nodes
        if not 0 <= number < len(nodes):
            raise _NotDrawnYet(name, number)
        outputs = nodes[number].outputs
        if not 0 <= index < len(outputs):
            raise ValueError(f"A call of layer {name!r} has no output {index}.")
        tensor: SymbolicTensor = outputs[index]
        return tensor

    def ends(self, structure: Any) -> Any:
        """Return the placeholders of a model's inputs or outputs, in the structure that is said.

        Args:
            structure: Histories, in nested lists, tuples and dicts.
        """
        if _is_history(structure):
            try:
                return self._tensor(structure, at_the_ends=True)
            except _NotDrawnYet as error:
                raise ValueError(f"Invalid Functional model configuration. {error}") from None
        if isinstance(structure, dict):
            return {key: self.ends(item) for key, item in structure.items()}
        if isinstance(structure, list | tuple):
            inner: Iterator[Any] = (self.ends(item) for item in structure)
            return tuple(inner) if isinstance(structure, tuple) else list(inner)
        raise TypeError(
            "The inputs and outputs of a functional model must be names of layers with numbers. "
            f"Received: {structure!r:.200}"
        )


def _is_history(value: Any) -> bool:
    """Whether a value is a name, the number of a call, and that of an output."""
    if not isinstance(value, list | tuple) or len(value) != 3 or not isinstance(value[0], str):
        return False
    return all(isinstance(number, int) and not isinstance(number, bool) for number in value[1:])
