"""Where `with_options` stands in a pipeline: its elements pass through as they are.

What comes after it has its options too.
"""

from collections.abc import Callable

from mirrored.data.arrays import Rows
from mirrored.data.options import Options
from mirrored.data.rng import Iteration
from mirrored.data.sources import Derived, Slices, Transform
from mirrored.data.spec import Elements


class Optioned(Derived):
    """The elements of another transform, with options."""

    def __init__(self, source: Transform, options: Options) -> None:
        super().__init__(source)
        self.options = options
        self.batch_size = source.batch_size

    @property
    def slices(self) -> Slices | None:
        """Those of the elements."""
        return self._source.slices

    def open(self, iteration: Iteration) -> Elements:
        """Return the other transform's iterator."""
        return self._source.open(iteration.source())

    def open_rows(self, iteration: Iteration) -> Callable[[int], Rows]:
        """Return what gives the other transform's rows."""
        return self._source.open_rows(iteration.source())


def merged_options(transform: Transform) -> Options:
    """Return the options of a transform and of all that it takes elements from."""
    options = Options()
    for source in transform.sources:
        options = options.merge(merged_options(source))
    return options.merge(transform.options) if isinstance(transform, Optioned) else options
