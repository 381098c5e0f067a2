"""Metrics, which are reported in addition to the loss; `get` finds one by its name."""

from mirrored._late import late_module as _late_module

_late_module(
    __name__,
    {
        "mirrored.training.losses": """
            KLD MAE MAPE MSE MSLE binary_crossentropy binary_focal_crossentropy
            categorical_crossentropy categorical_focal_crossentropy categorical_hinge
            hinge huber kl_divergence kld kullback_leibler_divergence log_cosh logcosh
            mae mape mean_absolute_error mean_absolute_percentage_error
            mean_squared_error mean_squared_logarithmic_error mse msle poisson
            sparse_categorical_crossentropy squared_hinge
        """,
        "mirrored.training.metrics.accuracy": """
            Accuracy BinaryAccuracy CategoricalAccuracy SparseCategoricalAccuracy
            SparseTopKCategoricalAccuracy TopKCategoricalAccuracy binary_accuracy
            categorical_accuracy sparse_categorical_accuracy
            sparse_top_k_categorical_accuracy top_k_categorical_accuracy
        """,
        "mirrored.training.metrics.confusion": """
            F1Score FBetaScore FalseNegatives FalsePositives Precision PrecisionAtRecall
            Recall RecallAtPrecision SensitivityAtSpecificity SpecificityAtSensitivity
            TrueNegatives TruePositives
        """,
        "mirrored.training.metrics.correlations": """
            ConcordanceCorrelation PearsonCorrelation R2Score concordance_correlation
            pearson_correlation
        """,
        "mirrored.training.metrics.curves": "AUC",
        "mirrored.training.metrics.mean": "Mean MeanSquaredError",
        "mirrored.training.metrics.means": """
            BinaryCrossentropy CategoricalCrossentropy CategoricalHinge CosineSimilarity
            Hinge KLDivergence LogCoshError MeanAbsoluteError
            MeanAbsolutePercentageError MeanMetricWrapper MeanSquaredLogarithmicError
            Poisson RootMeanSquaredError SparseCategoricalCrossentropy SquaredHinge Sum
        """,
        "mirrored.training.metrics.metric": "Metric",
        "mirrored.training.metrics.metric_registry": """
            AUTOMATIC deserialize get kind_of resolve serialize
        """,
        "mirrored.training.metrics.overlaps": "BinaryIoU IoU MeanIoU OneHotIoU OneHotMeanIoU",
    },
)
