"""Records what a Python function computes as a trace, for users and for `fit`."""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored._name_scope import name_scope
from mirrored.errors import OutOfRangeError
from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.tensor import Tensor
from mirrored.program.arguments import Input
from mirrored.program.dataset_inputs import DatasetInputs
from mirrored.program.graph import SHARED
from mirrored.program.recorder import GraphRecorder
from mirrored.program.results import Results
from mirrored.program.trace_cache import Trace
from mirrored.program.variable_creation import refuse, ruled_by


def trace(
    name: str,
    inputs: Sequence[Input],
    function: Callable[[list[Tensor]], Any],
    *,
    dataset_inputs: DatasetInputs | None = None,
    returns: type[Tensor] = RecordedTensor,
    replicas: int | None = None,
    purpose: str | None = None,
    may_make: bool = True,
    labels_checked: bool = False,
) -> Trace:
    """Record a function once its variables are where it leaves them.

    Args:
        name: What it is called.
        inputs: What it is fed.
        function: From what stands for that to what it returns, in nested lists, tuples and dicts.
        dataset_inputs: Gives it elements of datasets, of which it may come to the end.
        returns: Which leaves each run gives values of its own: constants may stay as they are.
        replicas: How many run in it; None: as many as have something to do.
        purpose: What errors call its memory; None: that of the function of its name.
        may_make: Whether it may make variables.
        labels_checked: Whether somebody looked at all labels before, so that no op has to.

    Raises:
        ValueError: It makes variables where it may not.
    """

    def record(*, logs: bool) -> Trace:
        recorder = GraphRecorder(name, logs=logs, labels_checked=labels_checked)
        recorder.graph.purpose = purpose or recorder.graph.purpose
        fed = [recorder.input(*input_) for input_ in inputs]
        results: Results | None = None
        if dataset_inputs is not None:
            dataset_inputs.record(recorder)
        try:
            with recorder.recording(), name_scope(""):
                results = Results(function(fed), lambda part: isinstance(part, returns))
        except OutOfRangeError:
            if dataset_inputs is None:
                raise
        recorder.on_pull = None  # What is kept of the recording must not keep its first elements.
        graph = recorder.finish([] if results is None else results.parts)
        # Replicas are known by their numbers: one without a node counts too.
        used = {node.replica for node in graph.nodes} - {SHARED}
        return Trace(graph, replicas or max(used, default=0) + 1, results)

    variables: list[str] = []
    with ruled_by(variables.append if may_make else refuse):
        first = record(logs=True)
    if first.graph.is_current() and not variables:
        return first
    # Again where it made variables, and then must make none; and where it brought some together.
    with ruled_by(refuse):
        return record(logs=False)
