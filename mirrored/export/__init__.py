"""Recorded functions as files of other programs' formats: ONNX.

A call is recorded for several sizes of its inputs, what differs between the recordings depends on
these sizes, and each operation has its nodes in a table. It knows nothing of models.
"""
