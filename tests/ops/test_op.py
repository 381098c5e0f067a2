"""The table of ops."""

from typing import Any

import pytest

from mirrored import ops


def nothing(*_: Any, **__: Any) -> Any:
    return None


def test_an_op_is_defined_once() -> None:
    assert ops.matmul  # Its module is imported when it is used.
    with pytest.raises(ValueError, match="second definition of 'MatMul'"):
        ops.register(ops.Op(name="MatMul", infer=nothing, kernel=nothing))
    assert ops.OPS["MatMul"].gradient is not None


@pytest.mark.parametrize("given", [{}, {"kernel": nothing, "view": nothing}])
def test_an_op_has_a_kernel_or_a_view(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="neither or both for 'New'"):
        ops.register(ops.Op(name="New", infer=nothing, **given))
    assert "New" not in ops.OPS


def test_ops_are_equal_by_identity() -> None:
    first, second = (ops.Op(name="New", infer=nothing, kernel=nothing) for _ in range(2))
    assert first != second
    assert len({first, second}) == 2


def test_calls_go_to_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("mirrored.ops.op.execute", lambda *call: seen.append(call))
    op = ops.OPS["Neg"]
    op(1, 2, axis=3)
    assert seen == [(op, (1, 2), {"axis": 3})]
