"""The names that TensorFlow keeps under ``tf.random``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.random",
    __name__,
    {
        "mirrored.ops": "normal=random_normal set_seed uniform=random_uniform",
        "mirrored.ops.random_draws": """
            categorical=random_categorical gamma=random_gamma poisson=random_poisson
            shuffle=random_shuffle truncated_normal=random_truncated_normal
        """,
        "mirrored.ops.stateless_random": """
            Algorithm fold_in=stateless_fold_in split=stateless_split stateless_categorical
            stateless_gamma stateless_normal stateless_poisson
            stateless_truncated_normal stateless_uniform
        """,
        "mirrored.random": "experimental",
        "mirrored.variables.generator": """
            Generator create_rng_state get_global_generator set_global_generator
        """,
    },
)
