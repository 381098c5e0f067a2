"""Keras' names of models as scikit-learn's estimators, as ``mr.keras.wrappers``.

An alias module without logic of its own. Whoever asks for a name needs scikit-learn.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module

if _typing.TYPE_CHECKING:
    from mirrored.training.sklearn_wrappers import SKLearnClassifier as SKLearnClassifier
    from mirrored.training.sklearn_wrappers import SKLearnRegressor as SKLearnRegressor
    from mirrored.training.sklearn_wrappers import SKLearnTransformer as SKLearnTransformer

_LATE = {
    "mirrored.training.sklearn_wrappers": "SKLearnClassifier SKLearnRegressor SKLearnTransformer",
}
_public_module("tf.keras.wrappers", __name__, _LATE)
