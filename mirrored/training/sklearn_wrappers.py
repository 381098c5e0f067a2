"""Models as scikit-learn's estimators, for its pipelines, searches and cross-validation.

Data are checked and classes are encoded by scikit-learn's own means; what is here trains a model of
its own for each `fit`, since estimators are fitted again and again.
"""

import copy
from typing import Any, Self

import numpy as np

from mirrored._arguments import explained
from mirrored.training.cloning import clone_model
from mirrored.training.losses import BinaryCrossentropy, BinaryFocalCrossentropy
from mirrored.training.model import Model

try:
    import sklearn
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.utils.metadata_routing import get_routing_for_object
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "SKLearnClassifier, SKLearnRegressor and SKLearnTransformer need the package scikit-learn, "
        "1.6 or later: install mirrored's extra `sklearn`, or run pip install scikit-learn"
    ) from error


@explained
class _Wrapper(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """What all three share; `SKLearnClassifier` says what the arguments mean."""

    def __init__(
        self,
        model: Any,
        warm_start: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        fit_kwargs: dict[str, Any] | None = None,
    ) -> None:
        # scikit-learn compares what was given with what is here: nothing is changed or checked.
        self.model = model
        self.warm_start = warm_start
        self.model_kwargs = model_kwargs
        self.fit_kwargs = fit_kwargs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Return an estimator of the same settings that is not fitted.

        A model that fits go on with is copied; others can be shared, since each fit clones them.
        """
        clone = copy.copy(self)
        for name, value in vars(self).items():
            if name.endswith("_"):  # What a fit has found.
                delattr(clone, name)
            elif name != "model" or self.warm_start:
                setattr(clone, name, copy.deepcopy(value))
        return clone

    @property
    def epoch_(self) -> int:
        """The number of epochs of the last `fit`; 0 before."""
        return len(self.history_.epoch) if hasattr(self, "history_") else 0

    def set_fit_request(self, **kwargs: bool | str | None) -> Self:
        """Say which of `fit`'s further arguments a pipeline or a search hands on.

        Args:
            **kwargs: For each argument, as `sample_weight`, whether it is handed on, or the name
                that it has there; None: it is an error where it is given.

        Raises:
            RuntimeError: Metadata routing is not switched on in scikit-learn.
        """
        if not sklearn.get_config().get("enable_metadata_routing", False):
            raise RuntimeError(
                "This method is only available when metadata routing is enabled. You can enable "
                "it using sklearn.set_config(enable_metadata_routing=True)."
            )
        self._metadata_request = get_routing_for_object(self)
        for name, alias in kwargs.items():
            self._metadata_request.fit.add_request(param=name, alias=alias)
        return self

    def fit(self, X: Any, y: Any, **kwargs: Any) -> Self:
        """Train a model on data.

        Args:
            X: The inputs, of shape (examples, features).
            y: The targets, of shape (examples,).
            **kwargs: Further arguments of the model's `fit`, instead of those in `fit_kwargs`.

        Raises:
            RuntimeError: The model is not compiled, or without a loss or an optimizer.
            ValueError: The data are not what scikit-learn takes, as with NaN in them.
        """
        X, y = validate_data(self, X, y)
        targets = self._encoded(y)
        model = self._model_for(X, targets)
        if not (model.compiled and model.loss and model.optimizer):
            raise RuntimeError(
                "Given model needs to be compiled, and have a loss and an optimizer."
            )
        self.history_ = model.fit(X, targets, **{**(self.fit_kwargs or {}), **kwargs})
        self.model_ = model
        return self

    def _model_for(self, X: Any, y: Any) -> Any:
        """Return the model to train: another one each time, but for a warm start."""
        if isinstance(self.model, Model):
            return self.model if self.warm_start else _clone(self.model)
        if self.warm_start and hasattr(self, "model_"):
            return self.model_
        return self.model(X=X, y=y, **(self.model_kwargs or {}))

    def _outputs(self, X: Any) -> Any:
        """Return what the trained model predicts."""
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, reset=False))

    def predict(self, X: Any) -> Any:
        """Return what the model predicts, in the form of the targets.

        Args:
            X: The inputs, of shape (examples, features).
        """
        return self._decoded(self._outputs(X))

    def _encoded(self, y: Any) -> Any:
        """Return targets as the model is trained on them, with two axes."""
        type_of_target(y, raise_unknown=True)
        self.target_axes_ = y.ndim
        return y.reshape(-1, 1) if y.ndim == 1 else y

    def _decoded(self, outputs: Any) -> Any:
        """Return outputs as targets were given."""
        is_column = self.target_axes_ == 1 and outputs.ndim == 2
        return np.squeeze(outputs, axis=1) if is_column else outputs


def _clone(model: Model) -> Model:
    """Return a model like another, compiled alike, in the same strategy's scope."""
    with model.distribute_strategy.scope():
        return clone_model(model)


class SKLearnClassifier(ClassifierMixin, _Wrapper):  # type: ignore[misc]  # As above.
    """A model as scikit-learn's classifier: labels in, labels out.

    The model is trained on the classes as one-hot rows, one column a class, and the largest of its
    outputs is the class that it predicts.

    Args:
        model: A compiled model, of which each `fit` trains a clone with weights of its own. Or a
            function that returns one, which is called as `model(X=X, y=y, **model_kwargs)` with
            the inputs and the one-hot rows of a `fit`.
        warm_start: Whether a `fit` goes on with the weights of the one before: of the given model
            itself, or of the model that the first `fit` called the function for.
        model_kwargs: Further arguments of the function.
        fit_kwargs: Arguments of the model's `fit`, as epochs; those that are given to `fit` of the
            estimator itself come first.

    Attributes:
        model_: The model that was trained.
        history_: The `History` of its training.
        classes_: The labels, sorted.

    Raises:
        ImportError: scikit-learn is not installed.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(2, "softmax")])
        >>> model.compile("sgd", "categorical_crossentropy")
        >>> classifier = mr.keras.wrappers.SKLearnClassifier(model, fit_kwargs={"verbose": 0})
        >>> fitted = classifier.fit([[0.0], [1.0], [2.0]], ["low", "high", "high"])
        >>> [str(label) for label in fitted.classes_]
        ['high', 'low']
        >>> fitted.predict_proba([[0.0], [1.0]]).shape
        (2, 2)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def decision_function(self, X: Any) -> Any:
        """Return the model's outputs, of shape (examples, classes).

        For two classes they are, as in scikit-learn, of shape (examples,): how much larger the
        output of the second class is.

        Args:
            X: The inputs, of shape (examples, features).
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes in float64, of shape (examples, classes).

        They are the model's outputs, divided by their sum. Where the model's loss is one of logits,
        their softmax or, for a binary loss, their sigmoid comes first.

        Args:
            X: The inputs, of shape (examples, features).

        Raises:
            ValueError: The outputs are neither logits nor probabilities.
        """
        outputs = self._outputs(X).astype(np.float64)
        loss = self.model_.loss
        if getattr(loss, "from_logits", False):
            if isinstance(loss, BinaryCrossentropy | BinaryFocalCrossentropy):
                outputs = np.exp(-np.logaddexp(0.0, -outputs))
            else:
                outputs = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        elif outputs.size and not (outputs.min() >= 0.0 and outputs.max() <= 1.0):
            raise ValueError(
                "The outputs of the model are not probabilities. Received: outputs from "
                f"{outputs.min():.6g} to {outputs.max():.6g}, and the loss {loss!r}. Let the last "
                'layer have the activation "softmax", or pass `from_logits=True` to the loss.'
            )
        total = outputs.sum(axis=1, keepdims=True)
        alike = np.full_like(outputs, 1.0 / outputs.shape[1])
        return np.divide(outputs, total, out=alike, where=total > 0.0)

    def _encoded(self, y: Any) -> Any:
        kind = type_of_target(y, raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(
                "Only binary and multiclass target types are supported. Target type: " + kind
            )
        rows = super()._encoded(y)
        self.encoder_ = OneHotEncoder(sparse_output=False).fit(rows)
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError("Classifier can't train when only one class is present.")
        return self.encoder_.transform(rows)

    def _decoded(self, outputs: Any) -> Any:
        return super()._decoded(self.encoder_.inverse_transform(outputs))


class SKLearnRegressor(RegressorMixin, _Wrapper):  # type: ignore[misc]  # As above.
    """A model as scikit-learn's regressor.

    Args:
        model: A compiled model, or a function that returns one; as for `SKLearnClassifier`, with
            targets of shape (examples, 1).
        warm_start: Whether a `fit` goes on with the weights of the one before.
        model_kwargs: Further arguments of the function.
        fit_kwargs: Arguments of the model's `fit`.

    Attributes:
        model_: The model that was trained.
        history_: The `History` of its training.

    Raises:
        ImportError: scikit-learn is not installed.

    Example:
        >>> import mirrored as mr
        >>> def line(X, y, rate):
        ...     model = mr.Sequential([mr.layers.Input(X.shape[1:]), mr.layers.Dense(1)])
        ...     model.compile(mr.optim.SGD(rate), "mse")
        ...     return model
        >>> regressor = mr.keras.wrappers.SKLearnRegressor(line, model_kwargs={"rate": 0.1})
        >>> fitted = regressor.fit([[0.0], [1.0]], [0.0, 2.0], epochs=100, verbose=0)
        >>> fitted.score([[0.0], [1.0]], [0.0, 2.0]) > 0.9
        True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class SKLearnTransformer(TransformerMixin, _Wrapper):  # type: ignore[misc]  # As above.
    """A model as scikit-learn's transformer: what it returns is what the next step is given.

    Args:
        model: A compiled model, or a function that returns one; as for `SKLearnRegressor`.
        warm_start: Whether a `fit` goes on with the weights of the one before.
        model_kwargs: Further arguments of the function.
        fit_kwargs: Arguments of the model's `fit`.

    Attributes:
        model_: The model that was trained.
        history_: The `History` of its training.

    Raises:
        ImportError: scikit-learn is not installed.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> transformer = mr.keras.wrappers.SKLearnTransformer(model, fit_kwargs={"verbose": 0})
        >>> transformer.fit_transform([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]], [0.0, 1.0]).shape
        (2, 1)
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def transform(self, X: Any) -> Any:
        """Return the model's outputs.

        Args:
            X: The inputs, of shape (examples, features).
        """
        return self._outputs(X)
