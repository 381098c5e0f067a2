"""Keras' names of models as scikit-learn's estimators, as ``mr.keras.wrappers``.

An alias module without logic of its own. Whoever asks for a name needs scikit-learn.
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
