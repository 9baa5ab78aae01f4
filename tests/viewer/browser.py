# SPDX-License-Identifier: MIT
"""A browser without a window, driven by WebDriver BiDi, which Chromium and Firefox both speak."""

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

try:
    import websockets
except ImportError:
    websockets = None

START_SECONDS = 60
ANSWER_SECONDS = 60
# Screenshots and answers can be large.
MESSAGE_MAX = 256 << 20


def missing(name):
    """The missing requirement of the browser; None if it can be used."""
    if websockets is None:
        return "python3-websockets"
    programs = {"chromium": ("chromium", "chromedriver"), "firefox": ("firefox-esr",)}[name]
    return next((program for program in programs if not shutil.which(program)), None)


class Failure(Exception):
    """The browser answered with an error."""


class Browser:
    """One page of a browser. Everything it logs and every request it makes is kept."""

    def __init__(self, name, is_dark=False):
        self.name, self.is_dark = name, is_dark
        self.folder = tempfile.mkdtemp()
        self.loop = asyncio.new_event_loop()
        self.logs, self.requests = [], []
        self.number = 0
        self.process = None
        self.session_url = self.socket = self.context = None
        try:
            url = self.start_chromium() if name == "chromium" else self.start_firefox()
            self.socket = self.run(self.connect(url))
            if name == "firefox":
                self.call("session.new", capabilities={})
            tree = self.call("browsingContext.getTree")
            self.context = tree["contexts"][0]["context"]
            self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        except BaseException:
            self.close()
            raise

    @staticmethod
    async def connect(url):
        return await websockets.connect(url, max_size=MESSAGE_MAX, ping_interval=None)

    def run(self, coroutine, seconds=START_SECONDS):
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, seconds))

    def launch(self, arguments, pattern):
        """Starts a program, and returns what matches in what it writes."""
        environment = {**os.environ, "HOME": self.folder, "MOZ_HEADLESS": "1",
                       "XDG_RUNTIME_DIR": self.folder}
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.STDOUT, env=environment,
                                        start_new_session=True)
        seen = ""
        for line in self.process.stdout:
            seen += line
            found = re.search(pattern, line)
            if found:
                return found[1]
        raise Failure(f"{arguments[0]} did not start:\n{seen}")

    def start_chromium(self):
        port = self.launch(["chromedriver", "--port=0"], r"started successfully on port (\d+)")
        options = ["--headless=new", "--hide-scrollbars", "--disable-gpu",
                   "--disable-dev-shm-usage", "--window-size=1400,900",
                   f"--user-data-dir={self.folder}/profile"]
        if self.is_dark:
            options.append("--blink-settings=preferredColorScheme=0")
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        wanted = {"capabilities": {"alwaysMatch": {
            "webSocketUrl": True, "goog:chromeOptions": {"args": options}}}}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/session",
                                         json.dumps(wanted).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            value = json.load(answer)["value"]
        self.session_url = f"http://127.0.0.1:{port}/session/{value['sessionId']}"
        return value["capabilities"]["webSocketUrl"]

    def start_firefox(self):
        profile = os.path.join(self.folder, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w", encoding="ascii") as file:
            print(f'user_pref("ui.systemUsesDarkTheme", {int(self.is_dark)});', file=file)
        return self.launch(["firefox-esr", "--headless", "--no-remote", "--profile", profile,
                            "--remote-debugging-port", "0", "--width", "1400", "--height", "900"],
                           r"WebDriver BiDi listening on (ws://\S+)") + "/session"

    def close(self):
        if self.socket:
            self.run(self.socket.close())
        if self.session_url:
            try:
                urllib.request.urlopen(urllib.request.Request(self.session_url, method="DELETE"),
                                       timeout=START_SECONDS).close()
            except OSError:
                pass
        if self.process:
            try:
                os.killpg(self.process.pid, 15)
                self.process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def exchange(self, message):
        await self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(await self.socket.recv())
            if answer.get("type") == "event":
                kind, detail = answer["method"], answer["params"]
                # Browsers have pages of their own.
                where = detail.get("source", detail) if kind == "log.entryAdded" else detail
                if where.get("context", self.context) not in (self.context, None):
                    continue
                (self.logs if kind == "log.entryAdded" else self.requests).append(detail)
            elif answer.get("id") == message["id"]:
                return answer

    def call(self, method, seconds=ANSWER_SECONDS, **parameters):
        self.number += 1
        answer = self.run(self.exchange({"id": self.number, "method": method,
                                         "params": parameters}), seconds)
        if answer["type"] == "error":
            raise Failure(f"{method}: {answer['error']}: {answer.get('message', '')}")
        return answer["result"]

    def evaluate(self, expression, seconds=ANSWER_SECONDS):
        """The value of an expression, which may be a promise; JSON carries it."""
        wrapped = f"(async () => JSON.stringify(await ({expression})))()"
        result = self.call("script.evaluate", seconds, expression=wrapped, awaitPromise=True,
                           target={"context": self.context})
        if result["type"] == "exception":
            raise Failure(result["exceptionDetails"]["text"])
        value = result["result"].get("value")
        return None if value is None else json.loads(value)

    def open(self, url):
        """Loads a page. Firefox, when the machine is busy, may never answer a navigation that is to
        wait for the load, so the page itself is asked."""
        self.logs.clear()
        self.requests.clear()
        where = self.evaluate("location.href")
        if "#" in url and where.split("#")[0] == url.split("#")[0]:
            self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")
            return
        self.evaluate("window.isLeft = true")
        self.call("browsingContext.navigate", context=self.context, url=url, wait="none")
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self.is_loaded(url):
            if time.monotonic() > deadline:
                raise Failure(f"{url} was not loaded")
            time.sleep(0.01)

    def is_loaded(self, url):
        """Whether the page was loaded since one was left."""
        asked = "!window.isLeft && document.readyState === 'complete' && location.href"
        try:
            where = self.evaluate(asked, ANSWER_SECONDS / 10)
        except (Failure, asyncio.TimeoutError):  # asked between two pages
            return False
        return bool(where) and where.split("#")[0] == url.split("#")[0]

    def accessibility_tree(self):
        """The page as a screen reader gets it: a dictionary with role, name, value and properties
        for each node that it does not ignore."""
        wanted = {"cmd": "Accessibility.getFullAXTree", "params": {}}
        request = urllib.request.Request(f"{self.session_url}/goog/cdp/execute",
                                         json.dumps(wanted).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            nodes = json.load(answer)["value"]["nodes"]
        return [{**{name: node.get(name, {}).get("value", "") for name in ("role", "name", "value")},
                 **{found["name"]: found["value"].get("value") for found in node["properties"]}}
                for node in nodes if not node["ignored"]]

    def size(self, width, height):
        self.call("browsingContext.setViewport", context=self.context,
                  viewport={"width": width, "height": height})

    def screenshot(self, path):
        answer = self.call("browsingContext.captureScreenshot", context=self.context)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
