# SPDX-License-Identifier: Apache-2.0
"""browsers.py - Chromium and Firefox, driven without anything that has to be fetched: the DevTools protocol over a pipe, and
Marionette over a socket. Both have the same methods, and dispatch input as the browser gets it from a person."""
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program):
        self.program = shutil.which(program)
        self.profile = tempfile.mkdtemp(prefix="browser-", dir=os.environ.get("TMP"))
        self.number = 0

    def wait(self, expression, seconds=30):
        end = time.time() + seconds
        while time.time() < end:
            value = self.js(expression)
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError("never came true: " + expression)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)


class Chromium(Browser):
    name = "Chromium"

    def __init__(self):
        super().__init__("chromium")
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        words = [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
                 "--user-data-dir=" + self.profile, "about:blank"]

        def pipes():  # the program reads commands from 3 and answers on 4
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(words, preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.session, self.said, self.loaded, self.rest, self.outside = None, [], False, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Browser.setDownloadBehavior", behavior="deny")

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise AssertionError("Chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            m = self.read()
            if m.get("id") == self.number:
                if "error" in m:
                    raise AssertionError(method + ": " + json.dumps(m["error"]))
                return m["result"]
            self.note(m)

    def note(self, m):
        method, p = m.get("method"), m.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.said.append(p["type"] + ": " + " ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.said.append(p["entry"]["level"] + ": " + p["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "blob:", "about:")):
            self.outside.append(p["request"]["url"])

    def open(self, path, fragment=""):
        self.goto("file://" + path + fragment)

    def goto(self, there):
        for url in ("about:blank", there):
            self.said, self.loaded = [], False
            self.call("Page.navigate", url=url)
            while not self.loaded:
                self.note(self.read())

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, name):
        self.call("Emulation.setEmulatedMedia", media=name)

    def theme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError(expression + ": " + json.dumps(r["exceptionDetails"]))
        return r["result"].get("value")

    def mouse(self, kind, x, y, buttons):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if buttons or kind == "mouseReleased" else "none",
                  buttons=buttons, clickCount=0 if kind == "mouseMoved" else 1)

    def drag(self, x0, y0, x1, y1):
        self.mouse("mouseMoved", x0, y0, 0)
        self.mouse("mousePressed", x0, y0, 1)
        for k in range(1, 5):
            self.mouse("mouseMoved", x0 + (x1 - x0) * k / 4, y0 + (y1 - y0) * k / 4, 1)
        self.mouse("mouseReleased", x1, y1, 0)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y, 0)
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y, 0)

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}[key]} if key in ("Tab", "Enter") else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **code)

    def console(self):
        self.js("1")
        return self.said

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])


class Firefox(Browser):
    name = "Firefox"
    KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Escape": "\ue00c",
            "Home": "\ue011", "End": "\ue010", "Enter": "\ue007", "Tab": "\ue004"}
    outside = ()

    def __init__(self):
        super().__init__("firefox-esr")
        self.program = self.program or shutil.which("firefox")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with open(os.path.join(self.profile, "user.js"), "w", encoding="utf-8") as f:
            for name, value in {"marionette.port": port, "browser.shell.checkDefaultBrowser": False, "app.update.enabled": False,
                                "datareporting.policy.dataSubmissionEnabled": False, "network.proxy.type": 0,
                                "browser.download.useDownloadDir": True, "browser.download.folderList": 2,
                                "browser.download.alwaysOpenPanel": False, "browser.download.dir": self.profile,
                                "layout.css.report_errors": True, "privacy.reduceTimerPrecision": False,
                                "toolkit.telemetry.reportingpolicy.firstRun": False}.items():
                f.write("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value)))
        words = [self.program, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile",
                 self.profile]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, MOZ_HEADLESS="1", HOME=self.profile))
        end = time.time() + 60
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), 120)
                break
            except OSError:
                if time.time() > end:
                    raise
                time.sleep(0.1)
        self.rest = b""
        self.read()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal"}})
        self.call("WebDriver:SetTimeouts", script=120000)  # axe on a busy machine
        self.call("WebDriver:Navigate", url="about:blank")

    def read(self):
        while b":" not in self.rest:
            self.rest += self.socket.recv(1 << 16)
        n, self.rest = self.rest.split(b":", 1)
        while len(self.rest) < int(n):
            self.rest += self.socket.recv(1 << 20)
        message, self.rest = self.rest[:int(n)], self.rest[int(n):]
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = json.dumps([0, self.number, method, params]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self.read()
        if error:
            raise AssertionError(method + ": " + json.dumps(error)[:500])
        return result

    STORAGE = "Cc['@mozilla.org/consoleAPI-storage;1'].getService(Ci.nsIConsoleAPIStorage)"

    def system(self, script):
        """In the process of the page, with the rights of the browser."""
        return self.call("WebDriver:ExecuteScript", script=script, args=[], sandbox="system")["value"]

    def open(self, path, fragment=""):
        self.call("WebDriver:Navigate", url="about:blank")
        self.system("Services.console.reset(); " + self.STORAGE + ".clearEvents(); return 1;")
        self.call("WebDriver:Navigate", url="file://" + path + fragment)

    def size(self, width, height):
        self.call("WebDriver:SetWindowRect", width=width, height=height)
        w, h = self.js("[innerWidth, innerHeight]")
        self.call("WebDriver:SetWindowRect", width=2 * width - w, height=2 * height - h)

    def theme(self, name):
        with_rights = "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', %d); return 1;"
        self.call("Marionette:SetContext", value="chrome")
        self.call("WebDriver:ExecuteScript", script=with_rights % (0 if name == "dark" else 1), args=[])
        self.call("Marionette:SetContext", value="content")

    def js(self, expression):
        """The text goes as it is: the policy of a page may forbid eval(). A script (it ends with ";1") says nothing."""
        script = "%s; done(1);" if expression.endswith(";1") else "Promise.resolve(\n%s\n).then(done);"
        return self.call("WebDriver:ExecuteAsyncScript", args=[], sandbox=None,
                         script="const done = arguments[0]; " + script % expression)["value"]

    def pointer(self, *actions):
        self.call("WebDriver:PerformActions", actions=[{"type": "pointer", "id": "m", "parameters": {"pointerType": "mouse"},
                                                        "actions": list(actions)}])

    @staticmethod
    def move(x, y):
        return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}

    def drag(self, x0, y0, x1, y1):
        moves = [self.move(x0 + (x1 - x0) * k / 4, y0 + (y1 - y0) * k / 4) for k in range(1, 5)]
        self.pointer(self.move(x0, y0), {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0})

    def click(self, x, y):
        self.pointer(self.move(x, y), {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def key(self, key):
        value = self.KEYS.get(key, key)
        self.call("WebDriver:PerformActions", actions=[{"type": "key", "id": "k", "actions": [
            {"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]}])

    def console(self):
        """What is said about files: Firefox' own components speak here, too."""
        return self.system("return Services.console.getMessageArray().map(m => String(m)).filter(t => t.includes('file://') && "
                           "!t.includes('{file: \"resource://'))"
                           ".concat(" + self.STORAGE + ".getEvents().map(e => e.level + ': ' + e.arguments.join(' ')));")

    def pdf(self):
        return base64.b64decode(self.call("WebDriver:Print", shrinkToFit=True)["value"])
