# SPDX-License-Identifier: MIT
"""A plug-in of pytest: the fixture `ttdcheck` runs a program, and the test fails if the program's
heap has leaks or errors. Use it by `pytest -p pytest_ttdcheck`, or, without its options, by a line
of a test:

    pytest_plugins = ["pytest_ttdcheck"]
"""

import json
import os
import shutil
import subprocess

import pytest

# Findings, and the statuses of a recorder that has not recorded the program, or has no answer. A
# program may end with one of these itself: then the trace has it.
FINDINGS = 116
NOT_RECORDED = range(121, 126)


def pytest_addoption(parser):
    group = parser.getgroup("ttdcheck")
    group.addoption("--ttdrecord", metavar="PATH", default=os.environ.get("TTDRECORD", "ttdrecord"),
                    help="the recorder, if it is not in PATH")
    group.addoption("--ttd-fail-on", metavar="KINDS", default="leaks,errors",
                    help="the findings that matter (default: leaks,errors)")


def exit_status(recorder, trace):
    """The status that the program itself has ended with, as its trace says; None if it does not."""
    if not os.path.exists(trace):
        return None
    analyzer = os.path.join(os.path.dirname(shutil.which(recorder) or ""), "ttdanalyze")
    shown = subprocess.run([analyzer, "info", "--format", "json", trace],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    info = json.loads(shown.stdout or "{}")
    return info.get("end_code") if info.get("end_reason") == "exited" else None


@pytest.fixture
def ttdcheck(request, tmp_path):
    """A function like subprocess.run(), for a program and its arguments; standard error is always
    captured, as text. The traces stay in `tmp_path`, of which pytest keeps the last three."""
    recorder = request.config.getoption("--ttdrecord")
    kinds = request.config.getoption("--ttd-fail-on")
    traces = []

    def run(*command, **options):
        traces.append(tmp_path / f"trace{len(traces)}.bin")
        result = subprocess.run([recorder, "--quiet", "--output", traces[-1], "--fail-on", kinds,
                                 "--", *command], stderr=subprocess.PIPE, text=True, **options)
        status = result.returncode
        if (status == FINDINGS or status in NOT_RECORDED) and \
                exit_status(recorder, traces[-1]) != status:
            pytest.fail(f"{result.stderr}\nsee 'ttdanalyze {traces[-1]}'", pytrace=False)
        return result

    return run
