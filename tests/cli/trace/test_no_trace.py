# SPDX-License-Identifier: MIT
"""Files that are no traces"""

import json
import os

import support


class NoTrace(support.TestCase):
    def test_what_verify_has_begun_is_ended(self):
        """Problems were told before it turned out that no chunk is of any use."""
        path = os.path.join(os.environ["TTD_SOURCE"], "fuzz", "seeds", "found-22")
        result = support.run("verify", "-f", "json", path)
        self.assertNotEqual(result.status, 0)
        found = json.loads(result.text)
        self.assertFalse(found["ok"])
        self.assertTrue(found["problems"])


if __name__ == "__main__":
    support.main()
