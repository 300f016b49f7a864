"""The package as it is installed."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import foreread
from foreread import _native

FOLDER = Path(foreread.__file__).parent


def test_it_is_typed() -> None:
    assert (FOLDER / "py.typed").exists()
    assert (FOLDER / "_native.pyi").exists()


def test_the_stubs_name_all_there_is() -> None:
    stubs = (FOLDER / "_native.pyi").read_text()
    for name in ("prefetch", "read", "Guard", "Reader", "Miss", "Stats"):
        thing = getattr(_native, name)
        kind = "class" if inspect.isclass(thing) else "def"
        assert f"{kind} {name}" in stubs
        if inspect.isclass(thing):
            body = stubs.split(f"class {name}")[1].split("@final")[0]
            for member in vars(thing):
                if not member.startswith("_"):
                    assert f"def {member}(" in body, f"{name}.{member}"


def test_everything_public_is_documented() -> None:
    for name in foreread.__all__:
        thing = getattr(foreread, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            assert inspect.getdoc(thing), name


def test_importing_it_imports_neither_numpy_nor_torch() -> None:
    program = "import foreread, sys; sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], cwd="/").returncode == 0
