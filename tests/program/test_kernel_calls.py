"""From a kernel to its plain calls: the same bits as the kernel's own, whatever it calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case_table import cases

from mirrored.backends.host import HostBackend
from mirrored.program.kernel_calls import Call, LaunchNotes, kernel_calls

HOST = HostBackend()
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
Kernel = Callable[..., None]


def stepwise(xp: Any, out: Any, x: Any) -> None:
    xp.multiply(x, 2, out=out)
    xp.add(out, 0.1, out=out)
    xp.maximum(out, 0, out=out)
    xp.copyto(out[0], 7)


def typed(xp: Any, out: Any, x: Any) -> None:
    xp.add(x, 1, out=out, dtype=np.float32)
    xp.subtract(1.5, out, out=out, casting="same_kind")


# Each writes into an array of the shape of its result.
KERNELS: dict[str, tuple[Kernel, tuple[int, ...]]] = {
    "several calls": (stepwise, (3, 4)),
    "calls with settings": (typed, (3, 4)),
    "sum of an axis": (lambda xp, out, x: xp.add.reduce(x, axis=(1,), out=out), (3,)),
    "sum of all": (lambda xp, out, x: xp.add.reduce(x, axis=(0, 1), out=out), ()),
    "sum that keeps": (lambda xp, out, x: xp.add.reduce(x, axis=1, out=out, keepdims=True), (3, 1)),
    "maximum": (lambda xp, out, x: xp.maximum.reduce(x, axis=(0,), out=out), (4,)),
    "product": (lambda xp, out, x: xp.dot(x, x.T, out=out), (3, 3)),
    "product of stacks": (lambda xp, out, x: xp.matmul(x, x.T, out=out), (3, 3)),
    "rows": (lambda xp, out, x: xp.copyto(out, x[::-1]), (3, 4)),
    "a cast": (lambda xp, out, x: xp.copyto(out, x, "unsafe"), (3, 4)),
    "zero": (lambda xp, out, x: xp.multiply(x, 0.0, out=out), (3, 4)),
    "zero of the other sign": (lambda xp, out, x: xp.multiply(x, -0.0, out=out), (3, 4)),
    "a number as an integer": (lambda xp, out, x: xp.power(x, 2, out=out), (3, 4)),
    "a condition": (lambda xp, out, x: xp.copyto(out, 0) or xp.sign(x, out=out), (3, 4)),
}


@cases(("kernel", "shape"), KERNELS.values(), ids=KERNELS)
def test_calls_compute_what_the_kernel_does(
    kernel: Kernel, shape: tuple[int, ...], bits: Any
) -> None:
    x, out, expected = X.copy(), np.full(shape, np.nan, np.float32), np.empty(shape, np.float32)
    calls = kernel_calls(HOST, kernel, out, x)
    assert np.isnan(out).all()  # Nothing is computed yet.
    for scale in (1, -2):
        x[...] = X * np.float32(scale)
        out.fill(np.nan)
        for call in calls:
            call.run()
        kernel(np, expected, x)
        assert bits([out]) == bits([expected])


def test_a_copy_onto_itself_is_no_call() -> None:
    out = np.zeros((2, 3), np.float32)
    copy: Kernel = lambda xp, out, x: xp.copyto(out, x)  # noqa: E731
    assert kernel_calls(HOST, copy, out, out) == []
    assert kernel_calls(HOST, copy, out, out[:]) == []
    for other in (np.zeros((2, 3), np.float32), out[::-1], out.view(np.int32)):
        assert len(kernel_calls(HOST, copy, out, other)) == 1


def test_a_kernel_gets_its_attributes_and_workspace() -> None:
    def kernel(xp: Any, out: Any, x: Any, *, by: float, workspace: tuple[Any, ...]) -> None:
        xp.multiply(x, by, out=workspace[0])
        xp.add(workspace[0], x, out=out)

    out, scratch = np.zeros_like(X), np.zeros_like(X)
    for call in kernel_calls(HOST, kernel, out, X, by=3.0, workspace=(scratch,)):
        call.run()
    np.testing.assert_array_equal(out, X * 3 + X)


def test_a_call_with_names() -> None:
    seen: list[Any] = []
    Call(lambda *args, **named: seen.append((args, named)), (1, 2, 3), ("a", "b")).run()
    assert seen == [((1,), {"a": 2, "b": 3})]


def test_calls_are_noted_and_what_they_need_is_made() -> None:
    log: list[Any] = []

    class Launcher:
        def launch(self, *args: Any, **options: Any) -> None:
            log.append(("launch", args, options))

        def prepare(self, method: str, args: Any) -> None:
            log.append(("prepare", method, args))

    calls: list[Any] = []
    launcher = Launcher()
    LaunchNotes(launcher, calls).launch("source", "name", shared=3)
    assert log == [("prepare", "launch", ("source", "name"))]
    (call,) = calls
    call.run()
    assert log[1:] == [("launch", ("source", "name"), {"shared": 3})]
