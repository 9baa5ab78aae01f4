# SPDX-License-Identifier: MIT
"""All pages in dark colours: pictures of them, and contrast that can be read. Everything else is the
same in light, and in the other files; one browser starts for all."""

import os
import sys

import browser
import support
import test_page
from test_answers import Legible
from test_exact import Pictures as PicturesOfExact
from test_page import Pictures, setUpModule, tearDownModule
from test_traces import Pictures as PicturesOfTraces

# A browser starts for each module that has cases.
for case in (Legible, Pictures, PicturesOfExact, PicturesOfTraces):
    case.__module__ = __name__
del case
if os.environ["HAS_ENGINE"] != "1":
    del PicturesOfExact

if __name__ == "__main__":
    lacking = browser.missing(test_page.NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
