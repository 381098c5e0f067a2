"""Elements whose making ends in an error are left out, and those behind them come all the same.

An error ends the iterator that it passes through, so this calls the functions of `map` itself.
"""

from contextlib import closing

from mirrored._logging import logger
from mirrored.data.rng import Iteration
from mirrored.data.sources import UNKNOWN_CARDINALITY, Following, Transform, named
from mirrored.data.spec import Element, Elements, Form
from mirrored.data.transforms import Mapped
from mirrored.ops.rng_state import drawing_from

# What a program that is wrong raises: TensorFlow would when it builds the dataset.
_WRONG = (NameError, AttributeError, TypeError, ImportError)


class Ignored(Following):
    """The elements that functions of `map` make without an error.

    Args:
        source: The transform of the last `map`.
        logs: Whether each error is a warning of the log.
    """

    def __init__(self, source: Mapped, *, logs: bool) -> None:
        super().__init__(source)
        self.cardinality = UNKNOWN_CARDINALITY
        self._logs = logs

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of those elements."""
        steps, each, at = [], self._source, iteration.source()
        while isinstance(each, Mapped):
            steps.append((each, each.rng.stream(at)))
            each, at = each.sources[0], at.source()
        form: Form | None = None
        with closing(each.open(at)) as elements:
            for index, element in enumerate(elements):
                try:
                    for mapped, stream in reversed(steps):
                        with named("map", index), drawing_from(stream):
                            element = mapped.result(element)
                except _WRONG:
                    raise
                except Exception as error:
                    if self._logs:
                        logger.warning("Error raised with error message %s", error)
                    continue
                form = form or Form(element)
                form.leaves(element, "What `map_func` returned")
                yield element

    def first(self) -> Element:
        """Return the first of them; without any, raise the error of the first that was tried."""
        with closing(self.open(_first_iteration(self))) as elements:
            for element in elements:
                return element
        return self._source.first()


def _first_iteration(transform: Transform) -> Iteration:
    """Return the first iteration over a transform, which counts as none."""
    return Iteration(sources=tuple(map(_first_iteration, transform.sources)))


def ignoring(source: Transform, *, logs: bool) -> Ignored:
    """Return the elements of a transform that are made without an error.

    Args:
        source: The transform.
        logs: Whether each error is a warning of the log.

    Raises:
        NotImplementedError: It is not that of a `map`.
    """
    if isinstance(source, Mapped):
        return Ignored(source, logs=logs)
    raise NotImplementedError(
        "`ignore_errors` leaves out elements for which the function of a `map` raises, and comes "
        f"right behind it. Received: a dataset of another method, {type(source).__name__}. Call it "
        "there, as in dataset.map(function).ignore_errors().batch(2)."
    )
