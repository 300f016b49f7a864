"""The types of arguments of the package's functions."""

from __future__ import annotations

import os
from typing import Protocol, SupportsIndex, Tuple, Union


class HasFileno(Protocol):
    """An open file, of any kind that has a descriptor."""

    def fileno(self) -> int: ...


#: A file: a path, an open file, or a descriptor.
FileName = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", HasFileno, int]

#: A read of the list: file, offset, length in bytes, and true if it is marked (for `on_miss`).
Access = Union[
    Tuple[FileName, SupportsIndex, SupportsIndex],
    Tuple[FileName, SupportsIndex, SupportsIndex, bool],
]
