"""The picture at the beginning of the README: its numbers are those of a run."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import mirrored as mr

_PICTURE = Path(__file__).parents[2] / "docs/overview.svg"


@pytest.mark.slow
def test_shards_and_memory_are_those_of_a_run() -> None:
    texts = [element.text or "" for element in ElementTree.parse(_PICTURE).iter()]
    assert any("set_simulated_gpus(8, memory_limit=16)" in text for text in texts)
    assert any("784-512-512-10" in text for text in texts)
    mr.config.experimental.set_simulated_gpus(8, memory_limit=16)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        dense = mr.layers.Dense
        model = mr.Sequential([dense(512, "relu"), dense(512, "relu"), dense(10)])
        model.compile("adam", mr.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.ones((100, 784), "float32"), np.arange(100) % 10
    batches = strategy.experimental_distribute_dataset(mr.data.Dataset.from_tensors(x))
    shards = [str(len(part)) for part in strategy.experimental_local_results(next(iter(batches)))]
    assert [text for text in texts if text.isdigit()] == shards

    model.fit(x, y, batch_size=100, verbose=0)
    # Of the step's own memory it depends on the machine's cores how much there is.
    used = [mr.config.experimental.get_memory_info(f"GPU:{i}")["current"] for i in range(8)]
    assert [text for text in texts if re.fullmatch(r"[\d.]+ MB", text)] == [
        f"{nbytes / 2**20:.1f} MB" for nbytes in used
    ]
