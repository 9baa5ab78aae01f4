# SPDX-License-Identifier: MIT
"""A browser without a window: Firefox speaks WebDriver BiDi, Chromium its own DevTools protocol, whose
answers take it a fifth of the time."""

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
POLL_SECONDS = 0.02
# Screenshots and answers can be large.
MESSAGE_MAX = 256 << 20


def missing(name):
    """The missing requirement of the browser; None if it can be used."""
    if websockets is None:
        return "python3-websockets"
    program = {"chromium": "chromium", "firefox": "firefox-esr"}[name]
    return None if shutil.which(program) else program


class Failure(Exception):
    """The browser answered with an error."""


class Browser:
    """One page of a browser. Everything it logs and the addresses of all its requests are kept."""

    def __init__(self, is_dark):
        self.is_dark = is_dark
        self.folder = tempfile.mkdtemp()
        self.loop = asyncio.new_event_loop()
        self.logs, self.requests = [], []
        self.number = 0
        self.process = self.socket = None
        try:
            self.begin()
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

    def close(self):
        if self.socket:
            self.run(self.socket.close())
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
            if "id" not in answer:
                self.note(answer["method"], answer["params"])
            elif answer["id"] == message["id"]:
                return answer

    def call(self, method, seconds=ANSWER_SECONDS, **parameters):
        self.number += 1
        answer = self.run(self.exchange({"id": self.number, "method": method,
                                         "params": parameters}), seconds)
        if "error" in answer:
            raise Failure(f"{method}: {answer['error']}: {answer.get('message', '')}")
        return answer["result"]

    def evaluate(self, expression, seconds=ANSWER_SECONDS):
        """The value of an expression, which may be a promise; JSON carries it."""
        value = self.result(f"(async () => JSON.stringify(await ({expression})))()", seconds)
        return None if value is None else json.loads(value)

    def open(self, url):
        """Loads a page. Firefox, when the machine is busy, may never answer a navigation that is to
        wait for the load, so the page itself is asked."""
        self.logs.clear()
        self.requests.clear()
        where = self.evaluate("location.href")
        self.evaluate("window.isLeft = true")
        self.navigate(url)
        if "#" in url and where.split("#")[0] == url.split("#")[0]:
            return
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self.is_loaded(url):
            if time.monotonic() > deadline:
                raise Failure(f"{url} was not loaded")
            time.sleep(POLL_SECONDS)

    def is_loaded(self, url):
        """Whether the page was loaded since one was left."""
        asked = "!window.isLeft && document.readyState === 'complete' && location.href"
        try:
            where = self.evaluate(asked, ANSWER_SECONDS / 10)
        except (Failure, asyncio.TimeoutError):  # asked between two pages
            return False
        return bool(where) and where.split("#")[0] == url.split("#")[0]

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.picture()["data"]))


class Firefox(Browser):
    # Its own pages, and notes of the pages that were opened, are not looked at.
    PREFERENCES = {"browser.startup.page": 0, "browser.newtabpage.enabled": False,
                   "places.history.enabled": False}

    def begin(self):
        profile = os.path.join(self.folder, "profile")
        os.mkdir(profile)
        preferences = {**self.PREFERENCES, "ui.systemUsesDarkTheme": int(self.is_dark)}
        with open(os.path.join(profile, "user.js"), "w", encoding="ascii") as file:
            for name, value in preferences.items():
                print(f'user_pref("{name}", {json.dumps(value)});', file=file)
        url = self.launch(["firefox-esr", "--headless", "--no-remote", "--profile", profile,
                           "--remote-debugging-port", "0", "--width", "1400", "--height", "900"],
                          r"WebDriver BiDi listening on (ws://\S+)")
        self.context = None
        self.socket = self.run(self.connect(url + "/session"))
        self.call("session.new", capabilities={})
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def note(self, method, detail):
        # Browsers have pages of their own.
        is_log = method == "log.entryAdded"
        where = detail.get("source", detail) if is_log else detail
        if where.get("context", self.context) in (self.context, None):
            if is_log:
                self.logs.append(detail.get("text"))
            else:
                self.requests.append(detail["request"]["url"])

    def result(self, expression, seconds):
        result = self.call("script.evaluate", seconds, expression=expression, awaitPromise=True,
                           target={"context": self.context})
        if result["type"] == "exception":
            raise Failure(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def navigate(self, url):
        self.call("browsingContext.navigate", context=self.context, url=url, wait="none")

    def size(self, width, height):
        self.call("browsingContext.setViewport", context=self.context,
                  viewport={"width": width, "height": height})

    def picture(self):
        return self.call("browsingContext.captureScreenshot", context=self.context)


class Chromium(Browser):
    # The messages and the requests of a page and its workers.
    DOMAINS = "Runtime.enable", "Log.enable", "Network.enable"

    def begin(self):
        options = ["--headless=new", "--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage",
                   "--disable-extensions", "--disable-component-update", "--disable-sync",
                   "--disable-background-networking", "--disable-default-apps", "--no-first-run",
                   "--window-size=1400,900", f"--user-data-dir={self.folder}/profile",
                   "--remote-debugging-port=0"]
        if self.is_dark:
            options.append("--blink-settings=preferredColorScheme=0")
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        port = self.launch(["chromium", *options, "about:blank"],
                           r"DevTools listening on ws://[^:/]+:(\d+)/")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list",
                                    timeout=START_SECONDS) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = self.run(self.connect(page["webSocketDebuggerUrl"]))
        for domain in ("Page.enable", *self.DOMAINS):
            self.call(domain)
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def note(self, method, detail):
        if method == "Runtime.consoleAPICalled":
            self.logs.append(" ".join(str(part.get("value", part.get("description")))
                                      for part in detail["args"]))
        elif method == "Runtime.exceptionThrown":
            thrown = detail["exceptionDetails"]
            self.logs.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif method == "Log.entryAdded":
            self.logs.append(detail["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(detail["request"]["url"])
        elif method == "Target.attachedToTarget":
            # It waits until it is looked at.
            for domain in (*self.DOMAINS, "Runtime.runIfWaitingForDebugger"):
                self.number += 1
                message = {"id": self.number, "method": domain, "sessionId": detail["sessionId"]}
                self.loop.create_task(self.socket.send(json.dumps(message)))

    def result(self, expression, seconds):
        result = self.call("Runtime.evaluate", seconds, expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise Failure(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def navigate(self, url):
        self.call("Page.navigate", url=url)

    def accessibility_tree(self):
        """The page as a screen reader gets it: a dictionary with role, name, value and properties
        for each node that it does not ignore."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [{**{name: node.get(name, {}).get("value", "") for name in ("role", "name", "value")},
                 **{found["name"]: found["value"].get("value") for found in node["properties"]}}
                for node in nodes if not node["ignored"]]

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def picture(self):
        return self.call("Page.captureScreenshot")


def start(name, is_dark=False):
    """Starts a browser by its name."""
    return {"chromium": Chromium, "firefox": Firefox}[name](is_dark)
