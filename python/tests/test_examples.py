"""The examples do the same work with foreread and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def said(example: str, *arguments: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_samples_in_a_shuffled_order(tmp_path: Path) -> None:
    folder = str(tmp_path / "dataset")
    said("random_samples.py", "--make", "--samples", "2000", folder)
    plain = said("random_samples.py", "--mode", "plain", "--cold", folder)
    assert plain.startswith("checksum ")
    assert said("random_samples.py", "--mode", "foreread", "--cold", folder) == plain


def test_rows_of_a_matrix(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    matrix = tmp_path / "matrix.npy"
    numpy.save(matrix, numpy.arange(800 * 1024, dtype="f4").reshape(800, 1024))
    plain = said("memmap_rows.py", "--plain", "--rows", "500", str(matrix))
    assert plain.startswith("sum ")
    assert said("memmap_rows.py", "--rows", "500", str(matrix)) == plain
