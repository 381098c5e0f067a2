"""The strategy of several workers by its older name, whose arguments are others."""

from typing import Any

from mirrored.distribute.cross_device_ops import CommunicationImplementation, CommunicationOptions
from mirrored.distribute.multi_worker_strategy import (
    MultiWorkerMirroredStrategy as _MultiWorkerMirroredStrategy,
)


class MultiWorkerMirroredStrategy(_MultiWorkerMirroredStrategy):
    """`mr.distribute.MultiWorkerMirroredStrategy`, with the arguments that it had before.

    Args:
        communication: Who carries values between workers, as TensorFlow calls it; see the argument
            `implementation` of `CommunicationOptions`.
        cluster_resolver: As for `mr.distribute.MultiWorkerMirroredStrategy`.

    Raises:
        ValueError: There is no such implementation; or as that class raises it.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.experimental.MultiWorkerMirroredStrategy().num_replicas_in_sync
        1
    """

    def __init__(
        self,
        communication: CommunicationImplementation | str = CommunicationImplementation.AUTO,
        cluster_resolver: Any = None,
    ) -> None:
        self._communication = communication
        options = CommunicationOptions(implementation=communication)
        super().__init__(cluster_resolver, options)

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with; see `Strategy`."""
        return {"communication": self._communication, "cluster_resolver": self._given_resolver}
