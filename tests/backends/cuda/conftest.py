"""What the tests of the CUDA backend share: arrays and launchers for kernels, and compilers.

Kernels run on the emulated card; what they would launch can be noted without one.
"""

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest

from mirrored import ops
from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.compiling import OPTIONS, Source
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.backends.cuda.kernels import COMBINATIONS, KERNELS
from mirrored.backends.cuda.launcher import DeviceKernel, Spec
from mirrored.ops.op import OPS

Array = np.ndarray[Any, Any]


class Card:
    """Runs kernels on the emulated card, on copies of arrays of the host.

    Args:
        emulator: The machine that has the card.
    """

    def __init__(self, emulator: Any) -> None:
        self.emulator = emulator
        (card,) = nvml.cards()
        self.backend = CudaBackend(card)
        self.pool = self.backend.make_pool(None, parent=None, growth=True)

    def array(self, array: Any) -> Any:
        """Return a copy of an array on the card."""
        host = np.asarray(array)
        storage = self.backend.allocate(self.pool, host.shape, host.dtype)
        self.backend.copy_from_host(storage, host)
        return storage.array

    def run(self, kernel: DeviceKernel, spec: Spec, *arrays: Any, **attrs: Any) -> Array:
        """Return what a kernel writes into an array of nonsense."""
        xs = [self.array(each) if isinstance(each, np.ndarray) else each for each in arrays]
        out = self.array(np.full(spec[0], 77).astype(spec[1]))
        if kernel.workspace is not None:
            specs: list[Any] = [(x.shape, x.dtype) for x in xs]
            if kernel.asks:
                specs.insert(0, self.backend.xp)
            with self.backend.entered():
                wanted = kernel.workspace(*specs, **attrs)
            attrs["workspace"] = tuple(
                self.array(np.full(shape, 55).astype(dtype)) for shape, dtype in wanted
            )
        self.backend.run(kernel.run, self.backend.xp, out, *xs, **attrs)
        return self.backend.to_host(out)

    def together(
        self,
        names: tuple[str, ...],
        specs: Sequence[Spec | None],
        inputs: Sequence[tuple[Any, ...]],
        attrs: Sequence[dict[str, Any]] | None = None,
    ) -> list[Array | None]:
        """Return what the one kernel of several ops writes into arrays of nonsense.

        Args:
            names: The ops.
            specs: For each the shape and dtype of its result; None where it has no memory.
            inputs: For each the arrays that it reads; None for what the kernel itself computes.
            attrs: For each its attributes.
        """
        outs = tuple(s and self.array(np.full(s[0], 77).astype(s[1])) for s in specs)
        run, attrs = COMBINATIONS[names].run, tuple(attrs or [{} for _ in names])
        self.backend.run(run, self.backend.xp, outs, tuple(inputs), attrs)
        return [None if out is None else self.backend.to_host(out) for out in outs]

    def both(self, name: str, *arrays: Array, **attrs: Any) -> tuple[Array, Array]:
        """Return an op's result of the card's kernel, and of the op's own on the host."""
        op = OPS[name]
        spec = op.infer(*(ops.TensorSpec(each.shape, each.dtype) for each in arrays), **attrs)
        scratch = {}
        if op.workspace is not None:
            specs = op.workspace(
                *(ops.TensorSpec(each.shape, each.dtype) for each in arrays), **attrs
            )
            scratch["workspace"] = tuple(np.empty(each.shape, each.dtype) for each in specs)
        expected = np.empty(spec.shape, spec.dtype)
        if op.kernel is not None:
            op.kernel(np, expected, *arrays, **attrs, **scratch)
        return self.run(KERNELS[name], (spec.shape, spec.dtype), *arrays, **attrs), expected


@pytest.fixture
def card(emulated_cuda: Callable[..., Any]) -> Card:
    """Return a card that kernels run on."""
    return Card(emulated_cuda())


class Noting:
    """A launcher that launches nothing, and notes what it was asked for.

    Attributes:
        launches: The source and the kernel's name of each launch.
        calls: What was called, in order: names of kernels and routines, 'copy', 'clear', 'matmul'.
    """

    def __init__(self) -> None:
        self.launches: list[tuple[Source, str]] = []
        self.calls: list[str] = []

    def launch(self, source: Source, name: str, *args: Any, **options: Any) -> None:
        """Note a kernel."""
        self.launches.append((source, name))
        self.calls.append(name)

    def copy(self, target: Any, source: Any) -> None:
        """Note a copy, of arrays that a copy of bytes is enough for."""
        assert target.flags.c_contiguous
        assert source.flags.c_contiguous
        assert target.nbytes == source.nbytes
        self.calls.append("copy")

    def clear(self, target: Any) -> None:
        """Note a clearing."""
        assert target.flags.c_contiguous
        self.calls.append("clear")

    def matmul(self, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
        """Note a product, of arrays that cuBLAS takes as they are."""
        assert out.ndim == a.ndim == b.ndim
        assert out.ndim in (2, 3)
        assert out.ndim == 2 or {a.shape[0], b.shape[0]} <= {1, out.shape[0]}
        self.calls.append("matmul")

    def solve_triangular(self, out: Any, matrices: Any, *_: Any, **options: bool) -> None:
        """Note triangular systems, of arrays that cuBLAS takes as they are."""
        assert out.shape[:2] == matrices.shape[:2]
        self.calls.append("solve_triangular")

    def factor(self, *_: Any) -> None:
        """Note LU factors."""
        self.calls.append("factor")

    def decompose(self, routine: str, *_: Any) -> None:
        """Note a routine of cuSOLVER."""
        self.calls.append(routine)

    def refuse_capture(self) -> None:
        """Note nothing: no graph is captured."""

    def workspace(self, *_: Any) -> int:
        """Return how much scratch memory a routine needs."""
        return 64


def _unlaunched(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array as the card has them, in the host's memory."""
    cupy = pytest.importorskip("cupy")
    bits = np.dtype(dtype)
    # A whole number of widest elements away from 0, as the card's own arrays are.
    memory = np.empty(int(np.prod(shape)) * bits.itemsize + 512, np.uint8)
    offset = -memory.ctypes.data % 256
    owned = cupy.cuda.UnownedMemory(memory.ctypes.data + offset, memory.nbytes - offset, memory, 0)
    return cupy.ndarray(shape, bits, memptr=cupy.cuda.MemoryPointer(owned, 0))


@pytest.fixture
def noted() -> Callable[..., Noting]:
    """Return ``noted(name, *(shape, dtype), **attrs)``: what an op's kernel asks for."""

    def note(name: str, *specs: Spec, **attrs: Any) -> Noting:
        launcher, kernel = Noting(), KERNELS[name]
        spec = OPS[name].infer(*(ops.TensorSpec(*each) for each in specs), **attrs)
        if kernel.workspace is not None:
            first = (launcher,) if kernel.asks else ()
            wanted = kernel.workspace(*first, *specs, **attrs)
            attrs["workspace"] = tuple(_unlaunched(*each) for each in wanted)
        arrays = [_unlaunched(*each) for each in specs]
        kernel.run(launcher, _unlaunched(spec.shape, spec.dtype), *arrays, **attrs)
        return launcher

    return note


Compile = Callable[[Iterable[Source], str], str]


@pytest.fixture(scope="session")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return ``complaints(sources, arch)``: what a compiler says of texts, '' where all is well.

    It is NVRTC, as where the library runs, or else nvcc. ``arch`` is a card's, such as 'sm_90';
    'compute_80' for what all cards from that one on can be given, which takes a third of the time;
    or 'lto_80' for what is optimized only when it is linked, a tenth of that.
    """
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError):
        return _of_nvcc(tmp_path_factory.mktemp("sources"))

    def of_text(text: str, arch: str) -> str:
        program = nvrtc.createProgram(text, "kernels.cu", (), ())
        failed = ""
        wanted = ("-arch=compute_80", "-dlto") if arch == "lto_80" else (f"-arch={arch}",)
        wanted += ("--device-as-default-execution-space",)  # As CuPy adds it.
        try:
            nvrtc.compileProgram(program, (*OPTIONS, *wanted))
        except nvrtc.NVRTCError as error:
            failed = f"{error}\n"
        said = nvrtc.getProgramLog(program).strip("\0\n")
        nvrtc.destroyProgram(program)
        return failed + said

    def of_nvrtc(sources: Iterable[Source], arch: str) -> str:
        sources = list(sources)
        if of_text(_in_one(sources), arch) == "":
            return ""
        complaints = {each.name: of_text(each.code, arch) for each in sources}
        return "\n".join(f"{name}: {said}" for name, said in complaints.items() if said)

    return of_nvrtc


@pytest.fixture
def assembly() -> Callable[[Source], str]:
    """Return ``assembly(source)``: what NVRTC makes of a text, as PTX for an H100."""
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    try:
        nvrtc.getVersion()
    except RuntimeError:
        pytest.skip("NVRTC is not installed.")

    def made(source: Source) -> str:
        program = nvrtc.createProgram(source.code, "kernels.cu", (), ())
        nvrtc.compileProgram(program, (*OPTIONS, "-arch=compute_90"))
        text = nvrtc.getPTX(program)
        nvrtc.destroyProgram(program)
        return text if isinstance(text, str) else text.decode()

    return made


def _in_one(sources: Iterable[Source]) -> str:
    """Return all texts as one, for a compiler takes long to start.

    Each is in a namespace of its own, which kernels with names of C could not be in, and without
    its macros behind it.
    """
    texts = []
    for number, source in enumerate(sources):
        code = source.code.replace('extern "C" ', "")
        undone = [f"#undef {name}" for name in re.findall(r"#define (\w+)", code)]
        texts += [f"// {source.name}\nnamespace n{number} {{", code, "}", *undone]
    return "\n".join(texts)


def _of_nvcc(folder: Path) -> Compile:
    nvcc = which("nvcc")
    if nvcc is None:
        pytest.skip("Neither NVRTC, through CuPy, nor nvcc is here to compile kernels.")

    def of_nvcc(sources: Iterable[Source], arch: str) -> str:
        (folder / "kernels.cu").write_text(_in_one(sources))
        made = "--cubin" if arch.startswith("sm_") else "--ptx"
        wanted = arch.replace("lto", "compute")
        command = (nvcc, *OPTIONS, f"-arch={wanted}", made, "kernels.cu")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    return of_nvcc


@pytest.fixture
def connect(emulated_cuda: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Return ``connect(count)``: so many emulated cards as ranks of a communicator."""
    from emulated_cuda.ranks import connecting  # It needs CuPy.

    yield from connecting(emulated_cuda)


@pytest.fixture
def pair(connect: Callable[..., Any]) -> Any:
    """Return two ranks on a card each."""
    return connect(2)
