"""What an op is, and the table of all of them.

One definition serves the eager call, the gradient and, later, recorded programs: whoever runs an
op finds here all there is to know of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from mirrored._late import FilledByFiles
from mirrored._symbolic import Symbolic, symbolic_in
from mirrored._tracebacks import shorten
from mirrored.ops.dispatch import execute
from mirrored.ops.spec import ALL_DTYPES, INTEGERS, DType, TensorSpec, is_narrow
from mirrored.ops.tensor import Tensor, operators

_Fields = ParamSpec("_Fields")

# kernel(xp, out, *arrays, **attrs); with `workspace=(array, ...)` where the op declares one.
Kernel = Callable[..., None]
Check = Callable[[], None]  # Raises where values are not what they have to be.


# A gradient per input, or a function that computes it if it is needed; None where there is none.
# Where an input was broadcast, its gradient may have the broadcast shape.
Grads = Sequence[Tensor | Callable[[], Tensor] | None]
Gradient = Callable[["OpCall", Tensor], Grads]  # gradient(call, upstream)
# full(spec, number): a constant, which is the same tensor in all calls of a recording.
Full = Callable[[TensorSpec, int], Tensor]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Op:
    """The definition of one operation with one output.

    Attributes:
        name: TensorFlow's name of it, as the placement log shows.
        infer: From the inputs' specs and the attributes to the output's; raises on bad ones.
        kernel: Writes the result into `out`. Inputs and `out` are C-contiguous arrays of one
            device. It must not allocate more than a few KiB besides its workspace.
        gradient: The rule that the tape composes, itself made of ops; None: not differentiable.
        devices: The types of device that have a kernel, best first.
        dtypes: Those that the inputs may have.
        may_alias: The positions of the inputs whose memory `out` may take over, where that input
            has the shape and dtype of `out` and no other input is the same memory.
        workspace: From the inputs' specs and the attributes to those of scratch arrays.
        view: Instead of a kernel, a function from the input's array and the attributes to a
            C-contiguous view of it.
        validate: From the inputs' arrays and the attributes to what checks the values of integers
            among them, as they are whenever it is called, where the host can read them; None: they
            need no check.
        elementwise: Whether each element of `out` depends on the same element of the inputs
            alone, or of inputs that are scalars; such ops may be computed in pieces.
        shape_only: Whether the result depends on the inputs' shapes and dtypes alone.
        random: Whether the result differs from call to call, by the attributes `key` and `draw`.
        whole: Whether what the kernel calls depends on the inputs' values, so that a program of the
            host makes one call of it.
        of_labels: Whether what `validate` checks are labels, all of which `fit` has looked at
            before.
        stateful: Whether each run of it counts, whatever it is given: its `validate` looks at
            values of any dtype, or tells of them. A program with such an op is the host's alone,
            and those whose output is a boolean run in their order: they take the one before, too.
        ordered: Whether other processes wait for each run of it: all such ops of a program run in
            the order in which they were called, one at a time. They take the one before, too.
        early: Whether it begins something that goes on beside what comes behind it: a program runs
            it as soon as what it takes is there.
        failure: What the error says where a device's kernel has no result for its inputs.
        flops: From the output's and the inputs' specs and the attributes to the additions and
            multiplications of the matrix products that it makes; None: it makes none.
        blocked: Whether the host makes these products block by block, each for one thread.
        lower: Computes the same bits by simpler ops, which recorded programs share between ops and
            place well: a function of `Full` and the op's arguments.
        direct: Those of `dtypes` that the kernel itself computes in on every device.
    """

    name: str
    infer: Callable[..., TensorSpec]
    kernel: Kernel | None = None
    gradient: Gradient | None = None
    devices: tuple[str, ...] = ("GPU", "CPU")
    dtypes: frozenset[DType] = ALL_DTYPES
    may_alias: tuple[int, ...] = ()
    workspace: Callable[..., tuple[TensorSpec, ...]] | None = None
    view: Callable[..., Any] | None = None
    validate: Callable[..., Check | None] | None = None
    elementwise: bool = False
    shape_only: bool = False
    random: bool = False
    whole: bool = False
    of_labels: bool = False
    stateful: bool = False
    ordered: bool = False
    early: bool = False
    failure: str = ""
    flops: Callable[..., int] | None = None
    blocked: bool = False
    lower: Callable[..., Tensor] | None = None
    direct: frozenset[DType] = field(init=False)

    def __post_init__(self) -> None:
        """Set apart the dtypes that take a moment's thought."""
        direct = frozenset(dtype for dtype in self.dtypes if not is_narrow(dtype))
        object.__setattr__(self, "direct", direct)

    def may_refuse(self, inputs: Iterable[TensorSpec]) -> bool:
        """Return whether values of such inputs are checked."""
        if self.validate is None:
            return False
        return self.stateful or any(spec.dtype in INTEGERS for spec in inputs)

    def __call__(self, *inputs: Any, **attrs: Any) -> Tensor:
        """Run the op eagerly: place it, allocate the result, run the kernel."""
        try:
            if Symbolic.exist:
                for value in inputs:  # Most are tensors, and this is the fastest way to see it.
                    if not isinstance(value, Tensor):
                        symbolic = symbolic_in((*inputs, *attrs.values()))
                        if symbolic is not None:
                            drawn: Tensor = symbolic.drawn(self, inputs, attrs)
                            return drawn
                        break
            return execute(self, inputs, attrs)
        except Exception as error:
            shorten(error)
            raise

    def __reduce__(self) -> Any:
        return _op_of_name, (self.name,)


def _op_of_name(name: str) -> Op:
    return OPS[name]


@dataclass(eq=False, slots=True)
class OpCall:
    """One call of an op, as tapes note it and gradient rules get it.

    Attributes:
        op: The op.
        inputs: The tensors that it was called with.
        attrs: Its attributes.
        output: Its result.
        needed: Of which inputs the gradient is wanted.
    """

    op: Op
    inputs: tuple[Tensor, ...]
    attrs: Mapping[str, Any]
    output: Tensor
    needed: tuple[bool, ...]


OPS: FilledByFiles[Op] = FilledByFiles("mirrored.ops")


def register(op: Op) -> Op:
    """Enter `op` in the table and return it.

    Raises:
        ValueError: Its name is taken, or it has not exactly one of kernel and view.
    """
    if (op.kernel is None) == (op.view is None):
        raise ValueError(
            f"An op needs a kernel or a view function. Received neither or both for {op.name!r}."
        )
    if OPS.setdefault(op.name, op) is not op:
        raise ValueError(f"An op can be defined once. Received a second definition of {op.name!r}.")
    operators[op.name] = op
    return op


def _defining(create: Callable[_Fields, Op]) -> Callable[_Fields, Op]:
    def define(*args: _Fields.args, **kwargs: _Fields.kwargs) -> Op:
        return register(create(*args, **kwargs))

    return define


# Creates an op of these attributes, enters it in the table and returns it.
define_op = _defining(Op)
