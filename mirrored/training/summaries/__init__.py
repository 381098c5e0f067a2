"""What TensorBoard shows: events, and what writes them."""
