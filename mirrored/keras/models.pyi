# Written by tests/support/stubs.py from the table in models.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training import Model as Model
from mirrored.training import Sequential as Sequential
from mirrored.training.cloning import clone_model as clone_model
from mirrored.training.files.model_files import load_model as load_model
from mirrored.training.files.model_files import model_from_json as model_from_json
from mirrored.training.files.model_files import save_model as save_model
