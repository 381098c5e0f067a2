"""Training: models, what they minimise and report, and the loops that run them.

Everything public of it is named in `mirrored` itself.
"""

from mirrored.training import runs as runs  # Else the first `fit` would wait for it.
from mirrored.training.model import Model as Model
from mirrored.training.sequential import Sequential as Sequential
