"""The threads that run a strategy's recorded steps.

They belong to the strategy, so that steps of one model after the other do not start new ones.
"""

from mirrored._arguments import explained
from mirrored.devices import hold_devices
from mirrored.program import Team


@explained
class StepThreads:
    """Who runs recorded steps, and the threads that do.

    Args:
        executor: "threads", "serial" or "auto"; see `MirroredStrategy`.
    """

    def __init__(self, executor: str) -> None:
        self._executor = executor
        self._team: Team | None = None
        hold_devices(self)

    @property
    def executor(self) -> str:
        """Who runs recorded steps: "threads", "serial" or "auto"."""
        return self._executor

    def team(self, threads: int) -> Team | None:
        """Return the threads that run recorded steps, which start with the first of them.

        Args:
            threads: How many they are, the caller included; 1: there are none.
        """
        if threads == 1:
            return None
        if self._team is None or self._team.size != threads:
            self.end_threads()
            self._team = Team(threads)
        return self._team

    def lose_devices(self) -> None:
        """End the threads: the devices that they work for are about to go."""
        self.end_threads()

    def end_threads(self) -> None:
        """End the threads that recorded steps were run by; another step starts new ones.

        They also end when the strategy is collected and when the interpreter exits.
        """
        team, self._team = self._team, None
        if team is not None:
            team.close()
