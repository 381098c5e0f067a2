"""Keras' names of metrics, as ``mr.keras.metrics``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.metrics",
    __name__,
    {
        "mirrored.training.metrics": """
            AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy
            CategoricalCrossentropy CategoricalHinge ConcordanceCorrelation
            CosineSimilarity F1Score FBetaScore FalseNegatives FalsePositives Hinge IoU
            KLD KLDivergence LogCoshError MAE MAPE MSE MSLE Mean MeanAbsoluteError
            MeanAbsolutePercentageError MeanIoU MeanMetricWrapper MeanSquaredError
            MeanSquaredLogarithmicError Metric OneHotIoU OneHotMeanIoU
            PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall
            RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity
            SparseCategoricalAccuracy SparseCategoricalCrossentropy
            SparseTopKCategoricalAccuracy SpecificityAtSensitivity SquaredHinge Sum
            TopKCategoricalAccuracy TrueNegatives TruePositives binary_accuracy
            binary_crossentropy binary_focal_crossentropy categorical_accuracy
            categorical_crossentropy categorical_focal_crossentropy categorical_hinge
            concordance_correlation deserialize get hinge huber kl_divergence kld
            kullback_leibler_divergence log_cosh logcosh mae mape mean_absolute_error
            mean_absolute_percentage_error mean_squared_error
            mean_squared_logarithmic_error mse msle pearson_correlation poisson
            serialize sparse_categorical_accuracy sparse_categorical_crossentropy
            sparse_top_k_categorical_accuracy squared_hinge top_k_categorical_accuracy
        """,
    },
)
