"""Programs on devices whose work runs on streams, beside the host: fed, launched and read later.

A step is fused groups of ops and what stands between them, captured and launched as a whole.
"""

from mirrored.program.streamed.planned import Planned as Planned
from mirrored.program.streamed.program import StreamedProgram as StreamedProgram
