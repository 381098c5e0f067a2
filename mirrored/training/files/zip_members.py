"""Zip archives whose maker may have made up what they say: each is checked before it is read.

A member is read where it stands, piece by piece; so what is in an archive takes no memory at once.
"""

import contextlib
import io
import os
import shutil
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

from mirrored.errors import WeightsFileError
from mirrored.training.files.tensor_tree import damaged

_PIECE = 1 << 20
_LARGE = 1 << 28  # Bytes; larger compressed members that grow as bombs do are refused.
_GROWTH = 100  # Numbers of weights are hardly compressed at all.
_MOST = 10_000  # Members: an archive has three, and the files of layers that write some.
# What is raised of spoilt archives.
_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, OSError, RuntimeError, ValueError)
_LOCAL = b"PK\x03\x04"
_LOCAL_SIZE = 30


class Members:
    """The members of an archive, by their names.

    Args:
        file: The open file.
        noun: What messages call it, with its name.

    Raises:
        WeightsFileError: It is no archive, or one that could do harm.
    """

    def __init__(self, file: IO[bytes], noun: str) -> None:
        self._file = file
        self._noun = noun
        with self._understood():
            self._archive = zipfile.ZipFile(file)
        self._end = file.seek(0, os.SEEK_END)
        members = self._archive.infolist()
        if len(members) > _MOST:
            raise self._spoilt(f"it has {len(members)} members")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            self._check(member)
            if member.filename in self._members:
                raise self._spoilt(f"it contains {member.filename!r:.100} twice")
            self._members[member.filename] = member

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self) -> list[str]:
        """Return the members' names."""
        return list(self._members)

    def size(self, name: str) -> int:
        """Return how many bytes a member says that it has."""
        return self._members[name].file_size

    def read(self, name: str, most: int) -> bytes:
        """Return all of a small member.

        Args:
            name: Its name.
            most: How many bytes it may have.

        Raises:
            WeightsFileError: There is none, it is larger, or it is spoilt.
        """
        if name not in self._members:
            raise self._spoilt(f"it has no {name!r}")
        if self._members[name].file_size > most:
            raise self._spoilt(f"its {name!r} has more than {most} bytes")
        member = self._members[name]
        with self._understood(), self._archive.open(member) as source:
            return source.read(member.file_size)  # Without a size it expands to any.

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """Open a member, which can be read at any place, after checking all of it.

        Raises:
            WeightsFileError: It is spoilt.
        """
        member = self._members[name]
        if member.compress_type != zipfile.ZIP_STORED:  # In place it could only be read in order.
            with tempfile.TemporaryFile() as copy:
                self.copy(name, copy)
                copy.seek(0)
                yield copy
            return
        section = Section(self._file, self._place_of(member), member.file_size)
        if section.checksum() != member.CRC:
            raise self._spoilt(f"the checksum of {name!r} does not fit its data")
        yield cast(IO[bytes], section)

    def copy(self, name: str, file: IO[bytes]) -> None:
        """Write a member into a file.

        Raises:
            WeightsFileError: It is spoilt.
        """
        with self._understood(), self._archive.open(self._members[name]) as source:
            shutil.copyfileobj(source, file, _PIECE)

    @contextlib.contextmanager
    def unpacked(self, folder: str) -> Iterator[str]:
        """Return a temporary folder with the files of one of the archive's, while it is needed.

        Args:
            folder: The archive's folder.
        """
        with tempfile.TemporaryDirectory() as target:
            for name in self._members:
                if name.startswith(f"{folder}/") and not name.endswith("/"):
                    path = os.path.join(target, *name.split("/")[1:])
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "xb") as file:
                        self.copy(name, file)
            yield target

    def _check(self, member: zipfile.ZipInfo) -> None:
        """Refuse a member that climbs out of its folder, is a link, or grows as a bomb does."""
        name = member.filename
        parts = name.removesuffix("/").split("/")
        if any(part in ("", ".", "..") for part in parts) or "\\" in name or ":" in parts[0]:
            raise self._spoilt(f"the name {name!r:.100} leads out of the archive")
        if name != member.orig_filename:
            raise self._spoilt(f"the name {member.orig_filename!r:.100} is not a file name")
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise self._spoilt(f"{name!r:.100} is not a regular file")
        if member.header_offset < 0:
            raise self._spoilt(f"{name!r:.100} begins before the file does")
        if member.flag_bits & 1:
            raise self._spoilt(f"{name!r:.100} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self._spoilt(f"{name!r:.100} is neither stored nor deflated")
        if member.compress_size > self._end:
            raise self._spoilt(f"it lacks a part of {name!r:.100}")
        grown = max(_LARGE, _GROWTH * member.compress_size)
        if member.file_size > grown:
            raise self._spoilt(
                f"{name!r:.100} has {member.compress_size} bytes and claims to expand to "
                f"{member.file_size} bytes"
            )

    def _place_of(self, member: zipfile.ZipInfo) -> int:
        """Return where the data of a member begin that is not compressed."""
        self._file.seek(member.header_offset)
        header = self._file.read(_LOCAL_SIZE)
        if len(header) != _LOCAL_SIZE or header[:4] != _LOCAL:
            raise self._spoilt(f"{member.filename!r:.100} is not at its place")
        rest = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        place = member.header_offset + _LOCAL_SIZE + rest
        if member.compress_size != member.file_size or place + member.file_size > self._end:
            raise self._spoilt(f"it lacks a part of {member.filename!r:.100}")
        return place

    def _spoilt(self, why: str) -> WeightsFileError:
        return damaged(self._noun, f"truncated, corrupt, or not written by Keras: {why}")

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        try:
            yield
        except WeightsFileError:
            raise
        except _ERRORS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise self._spoilt(f"{error!s:.200}") from error


class Section(io.RawIOBase):
    """A part of a file, as a file of its own.

    Args:
        file: The file.
        place: Where the part begins.
        size: How many bytes it has; None: all that follows, and what is written to it.
    """

    def __init__(self, file: IO[bytes], place: int, size: int | None = None) -> None:
        super().__init__()
        self._whole = file
        self._place = place
        self._size = size
        self._at = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to another place in the part."""
        start = 0 if whence == os.SEEK_SET else self._at
        if whence == os.SEEK_END:
            start = self._end()
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        """Return the place in the part."""
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Read as many bytes as a buffer takes, or as there are."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._end() - self._at))
        self._whole.seek(self._place + self._at)
        length: int = self._whole.readinto(view[:count])  # type: ignore[attr-defined]
        self._at += length
        return length

    def write(self, data: Any, /) -> int:
        """Write bytes at the present place."""
        self._whole.seek(self._place + self._at)
        count = self._whole.write(data)
        self._at += count
        return count

    def truncate(self, size: int | None = None, /) -> int:
        """Truncate the part to a number of bytes, and the file with it."""
        size = self._at if size is None else size
        self._whole.truncate(self._place + size)
        return size

    def checksum(self) -> int:
        """Return the checksum that archives have of the part, and go back to where it begins."""
        checksum, buffer = 0, memoryview(bytearray(_PIECE))
        self.seek(0)
        while count := self.readinto(buffer):
            checksum = zlib.crc32(buffer[:count], checksum)
        self.seek(0)
        return checksum

    def _end(self) -> int:
        if self._size is not None:
            return self._size
        return self._whole.seek(0, os.SEEK_END) - self._place


@contextlib.contextmanager
def written_in_place(archive: zipfile.ZipFile, file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """Add a member that is written at any of its places, as `ZipFile.open` cannot.

    Args:
        archive: The archive, which is being written.
        file: Its file, which can be read too.
        name: The member's name.
    """
    member = zipfile.ZipInfo(name, time.localtime()[:6])
    member.external_attr = 0o600 << 16
    member.CRC = 0  # It is not known yet.
    member.header_offset = file.seek(archive.start_dir)
    file.write(member.FileHeader(zip64=True))  # As long whatever the size is.
    section = Section(file, file.tell())
    yield cast(IO[bytes], section)
    member.CRC = section.checksum()
    member.file_size = member.compress_size = section.seek(0, os.SEEK_END)
    archive.start_dir = file.seek(0, os.SEEK_END)
    file.seek(member.header_offset)
    file.write(member.FileHeader(zip64=True))
    archive.filelist.append(member)
    archive.NameToInfo[name] = member
