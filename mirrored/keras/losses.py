"""Keras' names of losses, as ``mr.keras.losses``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.losses",
    __name__,
    {
        "mirrored.training.losses": """
            BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy
            CategoricalFocalCrossentropy CategoricalGeneralizedCrossEntropy
            CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLD KLDivergence
            LogCosh Loss MAE MAPE MSE MSLE MeanAbsoluteError MeanAbsolutePercentageError
            MeanSquaredError MeanSquaredLogarithmicError Poisson Reduction
            SparseCategoricalCrossentropy SquaredHinge Tversky binary_crossentropy
            binary_focal_crossentropy categorical_crossentropy
            categorical_focal_crossentropy categorical_generalized_cross_entropy
            categorical_hinge circle cosine_similarity deserialize dice get hinge huber
            kl_divergence kld kullback_leibler_divergence log_cosh logcosh mae mape
            mean_absolute_error mean_absolute_percentage_error mean_squared_error
            mean_squared_logarithmic_error mse msle poisson serialize
            sparse_categorical_crossentropy squared_hinge tversky
        """,
    },
)
