# Written by tests/support/stubs.py from the table in wrappers.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.training.sklearn_wrappers import SKLearnClassifier as SKLearnClassifier
from mirrored.training.sklearn_wrappers import SKLearnRegressor as SKLearnRegressor
from mirrored.training.sklearn_wrappers import SKLearnTransformer as SKLearnTransformer
