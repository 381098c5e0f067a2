"""Losses. Each is a formula and a check of its targets; `get` finds one by its name."""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.training.losses.crossentropy": """
            BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy
            binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy
        """,
        "mirrored.training.losses.elementwise": """
            MeanSquaredError mean_squared_error mse=mean_squared_error MSE=mean_squared_error
        """,
        "mirrored.training.losses.focal": """
            BinaryFocalCrossentropy CategoricalFocalCrossentropy
            CategoricalGeneralizedCrossEntropy binary_focal_crossentropy
            categorical_focal_crossentropy categorical_generalized_cross_entropy
        """,
        "mirrored.training.losses.loss": "Loss Reduction",
        "mirrored.training.losses.loss_registry": "as_loss deserialize get serialize",
        "mirrored.training.losses.margins": """
            CategoricalHinge Hinge SquaredHinge categorical_hinge hinge squared_hinge
        """,
        "mirrored.training.losses.overlap": "Dice Tversky dice tversky",
        "mirrored.training.losses.pairs": "Circle circle",
        "mirrored.training.losses.probabilistic": """
            KLD KLDivergence Poisson kl_divergence kld kullback_leibler_divergence
            poisson
        """,
        "mirrored.training.losses.regression": """
            CosineSimilarity Huber LogCosh MAE MAPE MSLE MeanAbsoluteError
            MeanAbsolutePercentageError MeanSquaredLogarithmicError cosine_similarity
            huber log_cosh logcosh mae mape mean_absolute_error
            mean_absolute_percentage_error mean_squared_logarithmic_error msle
        """,
    },
)
