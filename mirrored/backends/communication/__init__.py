"""What connects devices that sum arrays together, and keeps deadlines.

It knows neither CUDA nor replicas: devices are backends with streams, and what is summed is arrays.
"""
