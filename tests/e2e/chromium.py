"""A headless Chromium, driven over its debugging pipe: no driver and no package besides the browser itself."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    def __init__(self, width=1280, height=800, dark=False):
        self.profile = tempfile.TemporaryDirectory(prefix="ballast-chromium-", ignore_cleanup_errors=True)
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()

        def connect():
            # The browser reads from 3 and writes to 4; both may be in the way of the other.
            reading, writing = os.dup(to_browser), os.dup(to_us)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1", f"--window-size={width},{height}",
                 f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"]
        self.process = subprocess.Popen([BROWSER, *flags, "about:blank"], preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(to_us)
        self.write_to, self.read_from = from_us, from_browser
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)
        self.theme(dark)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_to)
        os.close(self.read_from)
        self.profile.cleanup()

    def message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_from], [], [], left)[0]:
                return None
            read = os.read(self.read_from, 1 << 20)
            if not read:
                raise RuntimeError("the browser has gone")
            self.buffer += read
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        number = self.number
        request = {"id": number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message(60)
            if answer is None:
                raise TimeoutError(method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def offline(self):
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement.dataset.ready !== undefined")

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def wait(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.run(f"Boolean({condition})"):
                    return
            except (RuntimeError, AssertionError):
                pass  # between two pages
            time.sleep(0.05)
        raise AssertionError(f"never: {condition}\n{self.complaints()}\n{self.run('document.body.innerText')}")

    def key(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text and kind == "keyDown" else {}))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def picture(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def taken(self, method):
        self.call("Runtime.evaluate", expression="0")
        return [event["params"] for event in self.events if event.get("method") == method]

    def complaints(self):
        """What the console and the policy of the page complained about."""
        said = [entry["entry"]["text"] for entry in self.taken("Log.entryAdded")]
        said += [str([a.get("value") for a in call["args"]]) for call in self.taken("Runtime.consoleAPICalled") if call["type"] in ("error", "warning", "assert")]
        said += [thrown["exceptionDetails"].get("exception", {}).get("description", "?") for thrown in self.taken("Runtime.exceptionThrown")]
        return said

    def requests(self):
        return [request["request"]["url"] for request in self.taken("Network.requestWillBeSent")]
