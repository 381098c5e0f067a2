"""ONNX nodes for the ops of losses and gradients."""

from collections.abc import Mapping

from mirrored.export.elementwise_nodes import Rule, log1p, zero_where
from mirrored.export.node_writer import Call, Ref, Writer


def _relu(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    is_on = w.cast(w.compare("Greater", y, w.constant(0, y.dtype)), g.dtype)
    return w.add("Mul", g, is_on)


def _sigmoid(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    slope = w.add("Mul", w.add("Sub", w.constant(1, y.dtype), y), y)
    return w.add("Mul", slope, g)


def _tanh(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    slope = w.add("Sub", w.constant(1, y.dtype), w.add("Mul", y, y))
    return w.add("Mul", slope, g)


def _sqrt(w: Writer, call: Call) -> Ref:
    g, y = call.inputs
    return w.add("Div", w.add("Mul", g, w.constant(0.5, g.dtype)), y)


def _sigmoid_entropy(w: Writer, call: Call) -> Ref:
    logits, labels = call.inputs
    power = w.add("Exp", w.add("Neg", w.add("Abs", logits)))
    above = w.add("Max", logits, w.constant(0, logits.dtype))
    straight = w.add("Sub", above, w.add("Mul", logits, labels))
    return w.add("Add", straight, log1p(w, power))


def _softmax_entropy(w: Writer, call: Call) -> Ref:
    logits, labels = call.inputs
    entropies = w.add("Mul", w.add("LogSoftmax", logits, axis=1), labels)
    return w.add("Neg", w.add("ReduceSum", entropies, w.dims([1]), keepdims=0))


RULES: Mapping[str, Rule] = {
    "ReluGrad": _relu,
    "SigmoidCrossEntropyWithLogits": _sigmoid_entropy,
    "SigmoidGrad": _sigmoid,
    "SoftmaxCrossEntropyWithLogits": _softmax_entropy,
    "SqrtGrad": zero_where(0, _sqrt),
    "TanhGrad": _tanh,
}
