# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A page in a headless Chromium, driven through its pipe. Source: the DevTools protocol, --remote-debugging-pipe."""
import base64
import fcntl
import json
import os
import subprocess
import tempfile
import time

from machine import need_program

PATIENCE_S = 60


class Browser:
    """One page at a time: open() it, run() scripts in it, press() keys."""

    def __init__(self, width=1400, height=900, dark=False):
        program = need_program("chromium")
        self.folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def place():  # the browser reads commands from 3 and writes answers to 4
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             f"--user-data-dir={self.folder.name}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.to, self.of = open(ours_out, "wb", buffering=0), open(ours_in, "rb", buffering=0)
        self.read, self.last, self.session, self.errors = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(f"{domain}.enable")
        self.look(width, height, dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")  # its processes write until they end
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
        self.to.close()
        self.of.close()
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.read:
            part = self.of.read(1 << 16)
            assert part, "the browser has ended"
            self.read += part
        text, _, self.read = self.read.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[self.to.write(text):]
        while True:
            answer = self.message()
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(answer["params"])
            if answer.get("method") == "Network.requestWillBeSent":
                self.asked.append(answer["params"]["request"]["url"])
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def look(self, width, height, dark=False, medium=""):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, fragment="", script=True):
        """The page as somebody opens it who has that address."""
        self.asked = []
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"file://{path}" + (f"#{fragment}" if fragment else ""))
        end = time.monotonic() + PATIENCE_S
        while not self.run("document.readyState === 'complete' && location.protocol === 'file:'"):
            assert time.monotonic() < end, f"{path} does not load"

    def run(self, script):
        """The value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    def press(self, key, text=None):
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS.get(key, 0),
                      **({"text": text} if text and kind == "keyDown" else {}))

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))


KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
