"""TensorFlow 1's `tf.summary`: operations whose values are summaries, and what writes them.

A session computes the numbers; what it returns for a summary is made of them on the host.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mirrored import ops
from mirrored._extras import package
from mirrored._logging import logger
from mirrored.compat.v1.graph import Graph, get_default_graph, graph_of
from mirrored.compat.v1.graph_elements import Tensor, TextTensor
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.variables import GraphKeys
from mirrored.errors import InvalidArgumentError
from mirrored.training.event_summaries import create_file_writer

# What the constants of tags are called.
_TAGS = {"scalar": "tags", "histogram": "tag"}
_NOT_IN_TAGS = re.compile(r"[^-/\w\.]")


class _Part(NamedTuple):
    """One value of a summary.

    Attributes:
        tag: What it is called.
        kind: "scalar", "histogram" or "text".
        tensor: Its numbers; of a text there are none that matter.
        text: The text.
    """

    tag: str
    kind: str
    tensor: Tensor
    text: str = ""


class Summary(TextTensor):
    """A result whose value is a summary, as bytes that a `FileWriter` takes."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        super().__init__((), [part.tensor for part in parts], self._bytes)
        self.parts = list(parts)

    def _bytes(self, values: Sequence[Any]) -> Any:
        pairs = [_value(part, value) for part, value in zip(self.parts, values, strict=True)]
        return _messages().Summary(value=pairs).SerializeToString()


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Summary:
    """Return a summary of a number.

    Args:
        name: What it is called, behind the name scopes that are open.
        tensor: The number.
        collections: The collections that it is put into; None: that which `merge_all` merges.
        family: What stands before its name.
    """
    return _drawn("scalar", "ScalarSummary", name, tensor, collections, family)


def histogram(
    name: str, values: Any, collections: Any = None, family: str | None = None
) -> Summary:
    """Return a summary of the distribution of numbers.

    Args:
        name: What it is called, behind the name scopes that are open.
        values: The numbers.
        collections: The collections that it is put into; None: that which `merge_all` merges.
        family: What stands before its name.
    """
    return _drawn("histogram", "HistogramSummary", name, values, collections, family)


def text(name: str, tensor: str, collections: Any = None) -> Summary:
    """Return a summary of a text.

    Args:
        name: What it is called, behind the name scopes that are open.
        tensor: The text. *Ours*: Python's.
        collections: The collections that it is put into; None: that which `merge_all` merges.

    Raises:
        TypeError: It is no text of Python's.
    """
    if not isinstance(tensor, str):
        raise TypeError(f"A text must be a Python string. Received: {tensor!r}")
    return _drawn("text", "TensorSummaryV2", name, 0, collections, None, tensor)


def _drawn(
    form: str, kind: str, name: str, value: Any, collections: Any, family: Any, text: str = ""
) -> Summary:
    graph = graph_of(value)
    inner = graph.name_scope(_clean(family)) if family else nullcontext()
    with graph.as_default(), inner:
        whole = graph.operation_name(_clean(name))
        tag = f"{_clean(family)}/{whole}" if family else whole
        shown = []
        if form in _TAGS:
            name, constant = f"{whole}/{_TAGS[form]}/", TextTensor((), [], lambda _: tag.encode())
            shown = graph.draw(_nothing, kind="Const", name=name, results=constant).outputs
        tensor = converted(value, name=f"{whole}/values/")
        summary = Summary([_Part(tag, form, tensor, text)])
        graph.draw(_nothing, (*shown, tensor), kind=kind, name=f"{whole}/", results=summary)
    return _collected(summary, [GraphKeys.SUMMARIES] if collections is None else collections)


def _collected(summary: Summary, collections: Sequence[str]) -> Summary:
    for collection in collections:
        summary.graph.add_to_collection(collection, summary)
    return summary


def merge(inputs: Sequence[Any], collections: Any = None, name: str | None = None) -> Summary:
    """Return one summary with the values of several.

    Args:
        inputs: The others.
        collections: The collections that it is put into; None: none.
        name: Its name.

    Raises:
        TypeError: One of them is no summary.
    """
    for item in inputs:
        if not isinstance(item, Summary):
            raise TypeError(f"Only summaries can be merged. Received: {item!r}")
    parts = [part for value in inputs for part in value.parts]
    summary, name = Summary(parts), f"{name or 'Merge'}/MergeSummary"
    draw = graph_of(inputs).draw
    draw(_nothing, (list(inputs),), kind="MergeSummary", name=name, results=summary)
    return _collected(summary, collections or [])


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Any:
    """Return one summary of all collected summaries; None if there are none.

    Args:
        key: The collection.
        scope: What their names begin with.
        name: Its name.
    """
    summaries = get_default_graph().get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None


def _nothing(*_: Any) -> Any:
    return ops.constant(False)


def _clean(name: str) -> str:
    """Return a name with what no name of an operation has replaced."""
    tag = _NOT_IN_TAGS.sub("_", name).lstrip("/")
    if tag != name:
        logger.info("Summary name %s is illegal; using %s instead.", name, tag)
    return tag


# ---------------------------------------------------------------------------- messages


def _messages() -> Any:
    """Return the module of the messages that summaries are written as."""
    return package(
        "tensorboardX.proto.summary_pb2", "tensorboard", "Files of events are written by"
    )


def _value(part: _Part, value: Any) -> Any:
    messages = _messages()
    if part.kind == "scalar":
        if np.size(value) != 1:
            raise InvalidArgumentError(
                f"tags and values are not the same shape: [] != {list(np.shape(value))} (tag "
                f"'{part.tag}')"
            )
        return messages.Summary.Value(tag=part.tag, simple_value=float(np.reshape(value, ())))
    if part.kind == "histogram":
        return messages.Summary.Value(tag=part.tag, histo=_histogram(part.tag, value))
    metadata = messages.SummaryMetadata(plugin_data={"plugin_name": "text"})
    tensor = {"dtype": "DT_STRING", "tensor_shape": {}, "string_val": [part.text.encode()]}
    return messages.Summary.Value(tag=part.tag, metadata=metadata, tensor=tensor)


@cache
def _limits() -> Any:
    """Return the upper ends of TensorFlow's buckets: each is a tenth wider than the one before."""
    ends, end = [], 1e-12
    while end < 1e20:
        ends.append(end)
        end *= 1.1
    ends.append(sys.float_info.max)
    return np.array([*(-limit for limit in reversed(ends)), 0.0, *ends])


def _histogram(tag: str, value: Any) -> Any:
    values = np.asarray(value, np.float64).ravel()
    if not np.isfinite(values).all():
        kind = "Nan" if np.isnan(values).any() else "Infinity"
        raise InvalidArgumentError(f"{kind} in summary histogram for: {tag}")
    limits = _limits()
    counts = np.bincount(np.searchsorted(limits, values, side="right"), minlength=limits.size)
    # Of empty buckets side by side the last one stays.
    last = np.append((counts[:-1] > 0) | (counts[1:] > 0), True)
    return _messages().HistogramProto(
        min=values.min(initial=sys.float_info.max),
        max=values.max(initial=-sys.float_info.max),
        num=values.size,
        sum=values.sum(),
        sum_squares=np.square(values).sum(),
        bucket_limit=limits[last],
        bucket=counts[last],
    )


class FileWriter:
    """Writes summaries to a new file of events, which TensorBoard shows.

    The package tensorboardX writes them.

    Args:
        logdir: The folder; it is made.
        graph: A graph, which is written too.
        max_queue: After how many summaries they are in the file.
        flush_secs: After how many seconds they are there at the latest, when another one comes.
        graph_def: Not provided.
        filename_suffix: What the file's name ends with.
        session: Not provided.

    Raises:
        ImportError: tensorboardX is not installed.
        ValueError: What is not provided is given.

    Example:
        >>> import tempfile
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default() as graph, tf.Session() as session:
        ...     merged = tf.summary.merge([tf.summary.scalar("loss", tf.constant(0.5))])
        ...     with tf.summary.FileWriter(tempfile.mkdtemp(), graph) as writer:
        ...         writer.add_summary(session.run(merged), global_step=1)
    """

    def __init__(
        self,
        logdir: Any,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if graph_def is not None or session is not None:
            raise ValueError("`graph_def` and `session` are not provided: pass `graph`.")
        self._logdir = logdir
        self._tags: set[str] = set()
        self._settings = logdir, max_queue, int(flush_secs * 1000), filename_suffix or ""
        self._writer = create_file_writer(*self._settings)
        if graph is not None:
            self.add_graph(graph)

    def get_logdir(self) -> Any:
        """Return the folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            summary: What a session returned, or a message.
            global_step: Its step.
        """
        if isinstance(summary, bytes):
            summary = _messages().Summary.FromString(summary)
        step = {} if global_step is None else {"step": int(global_step)}
        self._writer.write(summary=summary, **step)

    def add_graph(self, graph: Graph, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph: the names, types and inputs of its operations.

        Args:
            graph: The graph.
            global_step: Its step.
            graph_def: Not provided.
        """
        if graph_def is not None:
            raise ValueError("`graph_def` is not provided: pass `graph`.")
        from tensorboardX.proto import graph_pb2

        message = graph_pb2.GraphDef(node=_nodes(graph), versions={"producer": 22})
        step = {} if global_step is None else {"step": int(global_step)}
        self._writer.write(graph_def=message.SerializeToString(), **step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write the tag of a run; a `RunMetadata` is empty here.

        Args:
            run_metadata: The message.
            tag: What the run is called.
            global_step: Its step.

        Raises:
            ValueError: A run is called so already.
        """
        if tag in self._tags:
            raise ValueError("The provided tag was already used for this event type")
        self._tags.add(tag)
        step = {} if global_step is None else {"step": int(global_step)}
        self._writer.write(tagged_run_metadata={"tag": tag}, **step)

    def flush(self) -> None:
        """Flush the file."""
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()

    def reopen(self) -> None:
        """Open a new file."""
        self._writer.close()
        self._writer = create_file_writer(*self._settings)

    def __enter__(self) -> "FileWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _nodes(graph: Graph) -> Iterator[dict[str, Any]]:
    for operation in graph.get_operations():
        inputs = [f"{value.node.callee.name}:{value.index}" for value in operation.inputs]
        waited = [f"^{control.name}" for control in operation.control_inputs]
        yield {
            "name": operation.name,
            "op": operation.type,
            "device": operation.device,
            "input": [*(name.removesuffix(":0") for name in inputs), *waited],
        }
