"""Files of weights and of whole models, of this library's kind and of Keras'."""
