"""Every hot module can be the first one that is imported: compiled modules import each other's types, and a circle
shows only in some orders."""

from __future__ import annotations

import subprocess
import sys

import pytest

from brookmq import _pure


@pytest.mark.parametrize("name", _pure.hot_modules())
def test_a_hot_module_can_be_imported_first(name: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)
