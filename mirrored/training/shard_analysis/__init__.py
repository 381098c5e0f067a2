"""What a step's operations do along the axis of examples, found by recording the step.

It tells how the replicas' losses and gradients add up to those of the global batch, and which
operations let one example influence the result of another.
"""
