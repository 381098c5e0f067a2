"""Exports recorded functions to the formats of other programs: ONNX.

A call is recorded for several sizes of its inputs, what differs between the recordings depends on
these sizes, and each operation has its nodes in a table. It knows nothing of models.
"""
