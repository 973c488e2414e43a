#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assemble.py VERSION ENGINE OUT - the page out of its parts: styles, scripts, and ENGINE.js and ENGINE.wasm, packed. The same
parts give the same bytes. The browser runs the scripts named by their hashes and nothing else, and asks nobody for anything."""
import base64
import gzip
import hashlib
import os
import re
import sys

MOST = 4 << 20


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def main():
    version, engine, out = sys.argv[1:]
    with open(engine + ".wasm", "rb") as f:
        wasm = f.read()
    script = "\n" + "".join(text(p) for p in ("visualize/page.js", "visualize/instrument.js", "page/app.js"))
    with open("tests/recordings/many-steps.vct", "rb") as f:
        warm = f.read()
    parts = {"WARM": packed(warm), "VERSION": version, "STYLE": text("visualize/page.css") + text("page/app.css"), "SCRIPT": script,
             "HASH": "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
             "WORKER": packed((text(engine + ".js") + text("page/worker.js")).encode()), "WASM": packed(wasm)}
    page = re.sub(r"@([A-Z]+)@", lambda m: parts[m.group(1)], text("page/page.html"))
    if len(page) > MOST:
        sys.exit("%s: %d bytes, and %d is the most" % (out, len(page), MOST))
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out + ".new", "w", encoding="utf-8") as f:
        f.write(page)
    os.replace(out + ".new", out)


main()
