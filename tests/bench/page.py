#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py FILE... - the page beside PyTorch's own, in one Chromium: milliseconds from dropping a file to the first picture that
stands there, to an answer (PyTorch's page has none), and for what-ifs. VIZ names a folder with PyTorch's
torch/utils/viz/MemoryViz.js and d3.min.js, version 7; they are served from this machine, which stands in for the network that
they come from. Without VIZ only our page is measured. N=3 times each, by turns; BUILD holds vramcast.html."""
import http.server
import json
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, "tests/browser")
import browsers  # noqa: E402

PAGE = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "vramcast.html"))
MARK = "(e => e.length ? e[0].startTime : 0)(performance.getEntriesByName('%s'))"
WHATIFS = [("g", v) for v in ("rtx3090", "a100-40g-sxm", "t4", "l4", "h200")] + [("torch", v) for v in ("2.4", "2.12")] + [
    ("used", "2GiB"), ("capacity", "30GiB")] + [("conf", v) for v in (
        "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4", "garbage_collection_threshold:0.8",
        "backend:cudaMallocAsync")]
# A picture stands there when it is in the page and a frame with it was made.
WATCH = """new MutationObserver(function (list, observer) {
    if (!document.querySelector(%s)) return;
    observer.disconnect();
    requestAnimationFrame(function () {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => performance.mark("shown");
        channel.port2.postMessage(0);
    });
}).observe(document.body, { childList: true, subtree: true });
window.chosen_ = document.createElement("input"), chosen_.type = "file", chosen_.id = "chosen_", 1"""
DROP = """(function () {
    const data = new DataTransfer();
    for (const f of chosen_.files) data.items.add(f);
    window.dropped_ = performance.now();
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}()), 1"""


def theirs(viz):
    """PyTorch's page as it stands on the network; its modules come from d3.min.js here."""
    names = {"d3-axis@3": "axisLeft", "d3-scale@4": "scaleLinear", "d3-zoom@3": "zoom, zoomIdentity", "d3-brush@3": "brushX"}
    all_ = "data:text/javascript,const d3 = window.d3; export const %s;"
    maps = {"https://cdn.jsdelivr.net/npm/%s/+esm" % k: all_ % ", ".join("%s = d3.%s" % (n, n) for n in v.split(", ")) for k, v in names.items()}
    maps["https://cdn.jsdelivr.net/npm/d3@7/+esm"] = all_ % "select = d3.select, selectAll = d3.selectAll, pointer = d3.pointer"
    files = {"/": ("<!DOCTYPE html><html><head><script src='d3.min.js'></script><script type='importmap'>%s</script></head><body>"
                   "<script type='module' src='MemoryViz.js'></script></body></html>" % json.dumps({"imports": maps})).encode()}
    for name in ("d3.min.js", "MemoryViz.js"):
        with open(os.path.join(viz, name), "rb") as f:
            files["/" + name] = f.read()

    class Serve(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = files.get(self.path)
            self.send_response(200 if data else 204)
            self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d/" % server.server_port


def processor(b):
    """Milliseconds of processor time that the browser and its processes took so far: a busy machine changes these least."""
    parent, ticks = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8") as f:
                v = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parent[int(pid)], ticks[int(pid)] = int(v[1]), int(v[11]) + int(v[12])

    def is_ours(pid):
        while pid in parent and pid != b.process.pid:
            pid = parent[pid]
        return pid == b.process.pid
    return 1000 * sum(t for pid, t in ticks.items() if is_ours(pid)) / os.sysconf("SC_CLK_TCK")


def choose(b, path):
    b.js("document.body.append(chosen_), 1")
    b.call("DOM.enable")
    field = b.call("DOM.querySelector", nodeId=b.call("DOM.getDocument")["root"]["nodeId"], selector="#chosen_")["nodeId"]
    b.call("DOM.setFileInputFiles", nodeId=field, files=[os.path.abspath(path)])
    b.js("chosen_.remove(), 1")


def goes_wrong(b):
    return b.js("(e => e && e.textContent)(document.querySelector('#p-status.p-bad'))") or "\n".join(
        t for t in b.said if not t.startswith("log:"))


def until(b, mark, most=900):
    end = time.time() + most
    while time.time() < end:
        at = b.js(MARK % mark)
        if at:
            return at - b.js("dropped_")
        if goes_wrong(b):
            raise AssertionError(goes_wrong(b)[:300])
        time.sleep(0.01)
    raise AssertionError("nothing after %d s" % most)


def dropped(b, url, picture, path):
    b.goto(url)
    time.sleep(4)  # to look for a file takes longer
    b.js(WATCH % json.dumps(picture))
    choose(b, path)
    b.before = processor(b)
    b.js(DROP)


def ask(b, field, value):
    """Milliseconds to the answer for another setting; the picture is waited for as well."""
    b.js("performance.clearMarks(), window.dropped_ = performance.now(), (e => { e.value = %s; e.dispatchEvent(new Event('change', { bubbles: true })); })"
         "(document.querySelector('[name=%s]')), 1" % (json.dumps(value), field))
    took = until(b, "vramcast-answer")
    until(b, "vramcast-picture")
    return took


def measure(url, path, got, first):
    """One turn. A browser of its own: neither page pays for what the other left behind."""
    name, b = os.path.basename(path), browsers.Chromium()
    try:
        b.size(1240, 900)
        if url:
            dropped(b, url, "svg[viewBox='0 0 1024 576'] polygon, svg[viewBox='0 0 1024 576'] path", path)
            got.setdefault("memory_viz.%s.picture" % name, []).append(until(b, "shown"))
            got.setdefault("memory_viz.%s.picture.processor" % name, []).append(processor(b) - b.before)
            return
        dropped(b, "file://" + PAGE, "#p-report svg", path)
        for mark, what in (("vramcast-answer", "answer"), ("shown", "picture")):
            got.setdefault("page.%s.%s" % (name, what), []).append(until(b, mark))
            got.setdefault("page.%s.%s.processor" % (name, what), []).append(processor(b) - b.before)
        if first:
            print("# " + b.js("document.querySelector('#p-answer p').textContent"))
        if os.environ.get("WHATIF", "1") == "1":
            until(b, "vramcast-help")
            for field, value in WHATIFS:
                got.setdefault("page.%s.whatif.%s" % (name, value), []).append(ask(b, field, value))
                if field != "g":
                    ask(b, field, "")
    except AssertionError as e:
        print("# %s%s: %s" % ("PyTorch's page, " if url else "", name, e), flush=True)
    finally:
        b.stop()


def main():
    viz = os.environ.get("VIZ")
    url = theirs(viz) if viz else None
    for path in sys.argv[1:]:
        got = {}
        for turn in range(int(os.environ.get("N", "3"))):
            measure(None, path, got, not turn)
            if url:
                measure(url, path, got, False)
        for what, all_ in filter(lambda g: g[1], got.items()):
            print("bench %s %.0f ms (%s)" % (what, statistics.median(all_), ", ".join("%.0f" % v for v in all_)), flush=True)


main()
