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
        f"{each['internal_api']} {each['version']}, kernel {each.get('architecture', 'unknown')}, "
        f"{each['num_threads']} threads"
        for each in threadpoolctl.threadpool_info()
        if each["user_api"] == "blas"
    ]
    return "; ".join(found) or "none found"
