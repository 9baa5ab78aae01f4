# SPDX-License-Identifier: MIT
"""pytest runs the two programs of the build in PROGRAMS_BUILD under the recorder."""

import os
import pathlib

import pytest

pytest_plugins = ["pytest_ttdcheck"]
BUILD = pathlib.Path(os.environ["PROGRAMS_BUILD"])


@pytest.mark.parametrize("name", ["heap_clean", "heap_leaks"])
def test_program(ttdcheck, name):
    assert ttdcheck(BUILD / name).returncode == 0
