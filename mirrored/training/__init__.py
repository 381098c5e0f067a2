"""Training: models, what they minimise and report, and the loops that run them.

Everything public of it is named in `mirrored` itself.
"""

from mirrored.training.model import Model as Model
from mirrored.training.sequential import Sequential as Sequential
