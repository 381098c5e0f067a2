"""The loss and the metrics of an epoch, over all of its steps.

Totals and counts are added up, so that batches of different sizes count as they should.
"""

from mirrored.training.compilation import CompiledNetwork
from mirrored.training.metrics import Metric


class RunningMeans:
    """The means over an epoch so far: of the loss by example, of the metrics by their counts.

    Attributes:
        examples: How many examples there were so far.
    """

    def __init__(self, model: CompiledNetwork) -> None:
        self._metrics: list[Metric] = model.metrics
        self._loss = 0.0
        self.examples = 0
        # On the host: the metrics are told of the sums where somebody asks.
        self._sums = [[0.0, 0.0] for _ in self._metrics]
        for metric in self._metrics:
            metric.set_totals(0.0, 0.0)

    def add(self, rows: list[list[float]], examples: int) -> None:
        """Add global batches of one size."""
        for row in rows:
            self._loss += row[0] * examples
        self.examples += examples * len(rows)
        for number, sums in enumerate(self._sums):
            for row in rows:
                sums[0] += row[1 + 2 * number]
                sums[1] += row[2 + 2 * number]

    def logs(self) -> dict[str, float]:
        """Return the means by name."""
        logs = {"loss": self._loss / self.examples if self.examples else 0.0}
        for metric, (total, count) in zip(self._metrics, self._sums, strict=True):
            metric.set_totals(total, count)
            logs[metric.name] = total / (
                count or 1.0
            )  # What its `result` is, without an operation.
        return logs
