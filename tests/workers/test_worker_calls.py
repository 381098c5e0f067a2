"""What workers say of their calls, and when two of them agree."""

from case_table import cases

from mirrored.workers.worker_calls import ANY, BYTES, Call

CALL = Call(7, "sum", "float32", 12, "bucket 2 of 5 of step 17")


@cases(
    "call",
    [
        CALL,
        Call(1, "barrier", "", ANY, ""),
        Call(2**60, "gather of arrays", "bfloat16", ANY, "two\nlines"),
        CALL._replace(label="größe"),
    ],
)
def test_what_is_sent_is_what_arrives(call: Call) -> None:
    data = call.encode()
    assert len(data) == BYTES
    assert Call.decode(data) == call
    assert Call.decode(data).agrees(call)


@cases("what", ["x" * 500, "ö" * 500, "step " + "7" * 400])
def test_long_names_lose_their_end_and_still_agree(what: str) -> None:
    call = CALL._replace(label=what)
    assert len(call.encode()) == BYTES
    assert Call.decode(call.encode()).agrees(call)


@cases(
    ("changes", "agree"),
    [
        ({"label": "bucket 3 of 5 of step 18"}, True),
        ({"label": "loss of step 17"}, False),
        ({"number": 8}, False),
        ({"kind": "barrier"}, False),
        ({"dtype": "float64"}, False),
        ({"size": 13}, False),
    ],
)
def test_what_has_to_be_the_same(changes: dict[str, object], agree: bool) -> None:
    assert CALL.agrees(CALL._replace(**changes)) is agree  # type: ignore[arg-type]


def test_what_errors_say() -> None:
    assert str(CALL) == "call 7, sum of 12 float32 (bucket 2 of 5 of step 17)"
    assert str(Call(1, "barrier", "", ANY, "epoch 2")) == "call 1, barrier (epoch 2)"
    assert (
        str(Call(1, "gather of arrays", "int8", ANY, "y")) == "call 1, gather of arrays of int8 (y)"
    )
