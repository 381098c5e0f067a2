"""A step on one replica beside the same step on several, value by value."""
