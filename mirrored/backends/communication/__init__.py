"""What connects devices that sum arrays together, keeps deadlines, and tests it beforehand.

It knows neither CUDA nor replicas: devices are backends with streams, and what is summed is arrays.
"""
