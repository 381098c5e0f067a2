"""Listing, naming and splitting devices, as far as they touch the card or must not.

A context of CUDA is looked for through the driver's own library, which CuPy is not needed for.
"""

import ctypes
import os
import sys
import threading
import warnings
from typing import Any

import stand_ins

import mirrored as mr
from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.cuda_backend import CudaBackend

_NOT_INITIALISED = 3  # CUDA_ERROR_NOT_INITIALIZED: nobody has so much as started the driver.


def has_context() -> bool:
    """Return whether this process has a context on the first card."""
    if stand_ins.machine() is not None:
        return 0 in stand_ins.machine().contexts
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    flags, active = ctypes.c_uint(), ctypes.c_int()
    status = driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    if status == _NOT_INITIALISED:
        return False
    if status:
        raise RuntimeError(f"cuDevicePrimaryCtxGetState gave status {status}")
    return bool(active.value)


def listed() -> dict[str, Any]:
    """List and configure devices; return whether that made a context or imported CuPy."""
    cards = mr.config.list_physical_devices("GPU")
    details = mr.config.experimental.get_device_details(cards[0])
    part = mr.config.LogicalDeviceConfiguration(memory_limit=256)
    mr.config.set_logical_device_configuration(cards[0], [part, part])
    before = has_context()
    logical = mr.config.list_logical_devices("GPU")
    return {
        "names": [each.name for each in cards],
        "logical": [each.name for each in logical],
        "name": details["device_name"],
        "capability": details.get("compute_capability", ()),
        "context": before,
        # Emulated CUDA is made of CuPy's own arrays.
        "cupy": "cupy" in sys.modules and stand_ins.wanted() != "emulated",
    }


def alone() -> dict[str, Any]:
    """Compute on the last card, in two threads; return whether the first one got a context."""
    last = len(mr.config.list_physical_devices("GPU")) - 1
    answers = []

    def compute() -> None:
        with mr.device(f"GPU:{last}"):
            answers.append(float(mr.reduce_sum(mr.ones((1000,))).numpy()))
        mr.config.experimental.get_memory_info(f"GPU:{last}")

    for _ in range(2):
        compute()
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
    return {"answers": answers, "context": has_context()}


def asked_by_a_thread() -> dict[str, Any]:
    """Let a thread that never used CUDA ask whether the card is done; return what it was told."""
    backend = CudaBackend(nvml.cards()[0])
    event = backend.record()
    backend.synchronize()
    told: list[bool] = []
    thread = threading.Thread(target=lambda: told.append(backend.is_done(event)))
    thread.start()
    thread.join()
    return {"told": told}


def forked() -> dict[str, Any]:
    """List devices, then use the card in a child that is forked; return what it computed."""
    cards = mr.config.list_physical_devices("GPU")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of any threads, and those of NumPy's BLAS are always there.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        status = 1
        try:
            with mr.device("GPU:0"):
                total = mr.reduce_sum(mr.ones((1000,)))
            os.write(writing, f"{total.numpy()} {total.device}".encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    return {"cards": len(cards), "status": status, "answer": answer}


def hidden() -> dict[str, Any]:
    """Return the GPUs that there are, where CUDA_VISIBLE_DEVICES may hide them."""
    total = mr.reduce_sum(mr.ones((3,)))
    return {"gpus": len(mr.config.list_physical_devices("GPU")), "device": total.device}


def misnamed() -> dict[str, Any]:
    """Ask for devices that do not exist; return the errors, and that the card still works."""
    errors = {}

    def attempt(name: str, action: Any) -> None:
        try:
            action()
        except (ValueError, RuntimeError) as caught:
            errors[name] = f"{type(caught).__name__}: {caught}"

    def placed(name: str) -> None:
        with mr.device(name):
            mr.ones((2,))

    mr.config.set_soft_device_placement(False)
    attempt("device", lambda: placed("GPU:7"))
    attempt("strategy", lambda: mr.MirroredStrategy(["GPU:0", "GPU:7"]))
    attempt("twice", lambda: mr.MirroredStrategy(["GPU:0", "GPU:0"]))
    attempt("memory", lambda: mr.config.experimental.get_memory_info("GPU:7"))
    card = mr.config.list_physical_devices("GPU")[0]
    attempt("late", lambda: mr.config.experimental.set_memory_growth(card, False))
    with mr.device("GPU:0"):
        total = float(mr.reduce_sum(mr.ones((7,))).numpy())
    return {**errors, "total": total}
