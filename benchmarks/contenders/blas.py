"""What NumPy's matrix products run on, as threadpoolctl sees it.

A figure means little without the BLAS, its kernel and its threads.
"""


def blas_facts() -> str:
    """Return the library, version, kernel and threads of each BLAS in this process."""
    try:
        import threadpoolctl
    except ImportError:
        return "unknown, threadpoolctl is missing"
    found = [
        f"{info['internal_api']} {info['version']}, kernel {info.get('architecture', 'unknown')}, "
        f"{info['num_threads']} threads"
        for info in threadpoolctl.threadpool_info()
        if info["user_api"] == "blas"
    ]
    return "; ".join(found) or "none found"
