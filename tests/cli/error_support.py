# SPDX-License-Identifier: MIT
"""The findings of ttdanalyze errors in a script"""

from support import TestCase


class ErrorCase(TestCase):
    def findings(self, script, *arguments, name="trace.ttd"):
        return self.json_of("errors", self.write(script.close(), name), *arguments)

    def kinds(self, script, *arguments):
        return [f["kind"] for f in self.findings(script, *arguments)["findings"]]
