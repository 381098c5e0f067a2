"""Losses. Each is a formula and a check of its targets; `get` finds one by its name."""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.training.losses.batch_losses": "Circle Dice Tversky circle dice tversky",
        "mirrored.training.losses.crossentropy": """
            BinaryCrossentropy CategoricalCrossentropy SparseCategoricalCrossentropy
            binary_crossentropy categorical_crossentropy sparse_categorical_crossentropy
        """,
        "mirrored.training.losses.elementwise_losses": """
            MSE=mean_squared_error MeanSquaredError mean_squared_error
            mse=mean_squared_error
        """,
        "mirrored.training.losses.focal": """
            BinaryFocalCrossentropy CategoricalFocalCrossentropy
            CategoricalGeneralizedCrossEntropy binary_focal_crossentropy
            categorical_focal_crossentropy categorical_generalized_cross_entropy
        """,
        "mirrored.training.losses.loss": "Loss Reduction",
        "mirrored.training.losses.loss_registry": "as_loss deserialize get serialize",
        "mirrored.training.losses.regression": """
            CategoricalHinge CosineSimilarity Hinge Huber KLD=kl_divergence KLDivergence
            LogCosh MAE=mean_absolute_error MAPE=mean_absolute_percentage_error
            MSLE=mean_squared_logarithmic_error MeanAbsoluteError
            MeanAbsolutePercentageError MeanSquaredLogarithmicError Poisson SquaredHinge
            categorical_hinge cosine_similarity hinge huber kl_divergence
            kld=kl_divergence kullback_leibler_divergence=kl_divergence log_cosh
            logcosh=log_cosh mae=mean_absolute_error mape=mean_absolute_percentage_error
            mean_absolute_error mean_absolute_percentage_error
            mean_squared_logarithmic_error msle=mean_squared_logarithmic_error poisson
            squared_hinge
        """,
    },
)
