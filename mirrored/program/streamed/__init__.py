"""Programs on devices with streams, which run while the host continues.

A step is fused groups of ops and what stands between them, captured and launched as a whole.
"""

from mirrored.program.streamed.planned import Planned as Planned
from mirrored.program.streamed.program import StreamedProgram as StreamedProgram
