"""The programs that train the workloads on the GPU, each in a process of its own.

They answer the driver's requests; none imports another one's framework.
"""
