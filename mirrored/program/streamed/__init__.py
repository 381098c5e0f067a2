"""Programs on devices with streams, which run while the host continues.

A step is fused groups of ops and what stands between them, captured and launched as a whole.
"""

from mirrored.program.streamed.stream_plan import Planned as Planned
from mirrored.program.streamed.streamed_program import StreamedProgram as StreamedProgram
