"""Files from elsewhere in Keras' folder: copied or downloaded once, and compared with a hash."""

import hashlib
import os
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

from mirrored._arguments import explained
from mirrored._files import PathName, as_path, replacing
from mirrored._logging import logger
from mirrored.data.keras_files import home

_AT_ONCE = 1 << 20  # Bytes.
_PATIENCE = 60.0  # Seconds for which a server may send nothing.


@explained
def get_file(
    fname: PathName | None = None,
    origin: PathName | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: str | list[str] | None = "auto",
    cache_dir: PathName | None = None,
    force_download: bool = False,
) -> str:
    """Return the path of a file in Keras' folder, after fetching it if it is not there.

    Only a file with the given hash is kept.

    Args:
        fname: The name there; None: that of `origin`.
        origin: Where the file is from: a URL, which `urllib` reads, or a path.
        untar: Whether to extract a tar archive; `extract` does it too.
        md5_hash: The older form of `file_hash`.
        file_hash: The file's SHA-256 or MD5 hash.
        cache_subdir: The folder in `cache_dir`.
        hash_algorithm: "sha256", "md5", or "auto", which tells them apart by their length.
        extract: Whether to extract the archive; the folder is returned then.
        archive_format: "tar", "zip", "auto" for either, or a list of these.
        cache_dir: The folder; None: `KERAS_HOME`, or `~/.keras`.
        force_download: Whether to fetch the file though it is there.

    Raises:
        ValueError: There is no origin, a name has folders, the hash is another, or an archive that
            is to be extracted is none.
        OSError: The origin cannot be read, or the file not be written.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "rows.csv").write_text("1,2")
        >>> path = mr.keras.utils.get_file(
        ...     origin=folder / "rows.csv", cache_dir=folder, cache_subdir="kept"
        ... )
        >>> pathlib.Path(path).read_text()
        '1,2'
    """
    if origin is None:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    url = _url(origin)
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    folder = os.path.join(_writable(home() if cache_dir is None else cache_dir), cache_subdir)
    name = as_path(fname, "file") if fname else os.path.basename(urllib.parse.urlsplit(url).path)
    if not name or os.sep in name:
        raise ValueError(
            "`fname` is the name of a file, without folders; those are in `cache_dir` and "
            f"`cache_subdir`. Received: fname={fname!r}, origin={origin!r}"
        )
    os.makedirs(folder, exist_ok=True)
    target = extracted = os.path.join(folder, name)
    if extract or untar:  # The names are Keras'.
        if fname and "." in name:
            extracted = os.path.join(folder, f"{name.partition('.')[0]}_extracted")
        else:
            target += "_archive"
    if force_download or not _is_there(target, file_hash, hash_algorithm):
        _fetch(url, target, file_hash, hash_algorithm)
    if not (extract or untar):
        return target
    _extract(target, extracted, "tar" if untar else archive_format)
    return extracted


def _url(origin: PathName) -> str:
    """Return a URL; of a path that of its file."""
    text = as_path(origin, "file")
    return text if "://" in text or text.startswith("file:") else Path(text).absolute().as_uri()


def _writable(folder: PathName) -> str:
    """Return a folder, or that in which Keras keeps files where it cannot be written to."""
    name = os.path.expanduser(as_path(folder, "folder"))
    if os.access(name, os.W_OK) or not os.path.exists(name):
        return name
    return os.path.join("/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir(), ".keras")


def _hasher(file_hash: str, algorithm: str) -> Any:
    if algorithm not in ("auto", "sha256", "md5"):
        raise ValueError(
            '`hash_algorithm` is one of "auto", "sha256", "md5". Received: '
            f"hash_algorithm={algorithm!r}"
        )
    if algorithm == "auto":
        algorithm = "sha256" if len(file_hash) == 64 else "md5"
    return hashlib.new(algorithm, usedforsecurity=False)


def _is_there(path: str, file_hash: str | None, algorithm: str) -> bool:
    """Return whether a file is there, with its hash if it has one."""
    if not os.path.exists(path) or file_hash is None:
        return os.path.exists(path)
    hasher = _hasher(file_hash, algorithm)
    with open(path, "rb") as file:
        while part := file.read(_AT_ONCE):
            hasher.update(part)
    if hasher.hexdigest() == file_hash:
        return True
    logger.warning("The file %s has another hash than %s: it is fetched again.", path, file_hash)
    return False


def _fetch(url: str, path: str, file_hash: str | None, algorithm: str) -> None:
    logger.info("Downloading data from %s", url)
    hasher = None if file_hash is None else _hasher(file_hash, algorithm)
    try:
        source = urllib.request.urlopen(url, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"URL fetch failure on {url}: {error}") from error
    with source, replacing(path, "file") as file:
        while part := source.read(_AT_ONCE):
            file.write(part)
            if hasher is not None:
                hasher.update(part)
        if hasher is not None and hasher.hexdigest() != file_hash:
            raise ValueError(
                f"Incomplete or corrupted file detected. The {hasher.name} file hash does not "
                f"match the provided value of {file_hash}. Received: {hasher.hexdigest()}, from "
                f"{url}."
            )


def _extract(path: str, folder: str, formats: str | list[str] | None) -> None:
    """Extract an archive; what would be outside of the folder is refused."""
    wanted = ["tar", "zip"] if formats == "auto" else formats or []
    if "tar" in wanted and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    elif "zip" in wanted and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    else:
        raise ValueError(
            f"It is no archive that can be extracted. Received: {path}, "
            f"archive_format={formats!r}. Leave out `extract` and read the file itself."
        )
