# SPDX-License-Identifier: MIT
"""`export speedscope` in speedscope's own page: its table has our numbers."""

import functools
import http.server
import os
import shutil
import sys
import threading
import time
from collections import defaultdict

import browser
import support
from support import Script, TestCase, npm_package, run

PACKAGE = npm_package("speedscope")
SECONDS = 60

# Presses a key, of the page's own shortcuts.
PRESS = "window.dispatchEvent(new KeyboardEvent('keypress', {{key: '{}'}}))"
# The profile that is shown; and its table: total, self, and the function's name, without shares.
PROFILE = "document.body.innerText.split('\\n').find((line) => /\\([0-9]\\/[0-9]\\)$/.test(line)) || ''"
TABLE = """[...document.querySelectorAll('table tr')].slice(1).map((row) =>
    [...row.cells].map((cell) => cell.innerText.trim().replace(/ \\([^()]*%\\)$/, '')))"""


def bytes_text(size):
    """Bytes as speedscope shows them."""
    return f"{size} B" if size < 1024 else f"{size / 1024:.2f} KB"


def name_of(frame):
    module = frame["module"] and frame["module"] + "+"
    return frame["function"] or (module or "") + frame["offset"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Speedscope(TestCase):
    def serve(self):
        """Serves the package and our files on this machine; returns the address."""
        folder = self.path("served")
        shutil.copytree(PACKAGE / "dist/release", folder)
        handler = functools.partial(Quiet, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return folder, f"http://127.0.0.1:{server.server_port}/"

    def wait_for(self, expression, is_wanted):
        deadline = time.monotonic() + SECONDS
        while not is_wanted(found := self.page.evaluate(expression)):
            self.assertLess(time.monotonic(), deadline, (found, self.page.logs))
            time.sleep(browser.POLL_SECONDS)
        return found

    def expected(self, path, key, text):
        """Total and own sums of each function, as the table shows them."""
        total, own = defaultdict(int), defaultdict(int)
        for group in self.json_of("state", path, "--limit", "0")["groups"]:
            names = [name_of(frame) for frame in group["stack"]]
            own[names[0]] += group[key]
            for name in set(names):
                total[name] += group[key]
        return {name: (text(total[name]), text(own[name])) for name in total}

    def script(self):
        script = Script().basics()
        for index, stack in enumerate((2, 2, 3, 4, 1, 3)):
            script.alloc(0x1000 * (index + 1), 700 * (index + 1), stack=stack)
        script.free(0x5000)
        return script.close()

    def test_table(self):
        path = self.write(self.script())
        folder, address = self.serve()
        result = run("export", "-o", os.path.join(folder, "exported.json"), "speedscope", path)
        self.assertEqual(result.status, 0, result.errors)
        self.page = browser.start("chromium")
        self.addCleanup(self.page.close)
        self.page.open(f"{address}index.html#profileURL={address}exported.json")
        self.wait_for(PROFILE, lambda name: name.endswith("(1/2)"))
        self.page.evaluate(PRESS.format(3))
        for number, (key, text) in enumerate((("bytes", bytes_text), ("blocks", str)), 1):
            self.wait_for(PROFILE, lambda name, end=f"({number}/2)": name.endswith(end))
            rows = self.wait_for(TABLE, bool)
            self.assertEqual({name: (total, own) for total, own, name in rows},
                             self.expected(path, key, text))
            self.page.evaluate(PRESS.format("n"))


if __name__ == "__main__":
    lacking = browser.missing("chromium") or (not PACKAGE and "the npm package speedscope")
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
