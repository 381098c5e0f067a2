"""Connections between devices that sum arrays, with deadlines.

It knows neither CUDA nor replicas: devices are backends with streams, and what is summed is arrays.
"""
