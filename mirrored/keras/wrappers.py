"""Keras' names of models as scikit-learn's estimators, as ``mr.keras.wrappers``.

Its names are defined in other modules. Whoever asks for a name needs scikit-learn.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.wrappers",
    __name__,
    {
        "mirrored.training.sklearn_wrappers": """
            SKLearnClassifier SKLearnRegressor SKLearnTransformer
        """,
    },
)
