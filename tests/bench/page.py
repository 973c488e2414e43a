#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page.py FILE... - the page in Chromium: milliseconds from a file to the answer, to the pictures and to the answer for another
card; beside it, PyTorch's own _memory_viz.py on the same pickle (MEMORY_VIZ=FILE). BUILD holds vramcast.html."""
import os
import subprocess
import sys
import time

sys.path.insert(0, "tests/browser")
import browsers  # noqa: E402

PAGE = os.path.abspath(os.path.join(os.environ.get("BUILD", "build"), "vramcast.html"))
MARK = "(e => e.length ? e[0].startTime : 0)(performance.getEntriesByName('vramcast-%s'))"


def took(b, end):
    b.wait(MARK % end + " || !!document.querySelector('#p-status.p-bad')", 900)
    return b.js(MARK % end) - b.js(MARK % "open")


def main():
    b = browsers.Chromium()
    try:
        for path in sys.argv[1:]:
            name = os.path.basename(path)
            b.open(PAGE)
            time.sleep(2)
            b.call("DOM.enable")
            field = b.call("DOM.querySelector", nodeId=b.call("DOM.getDocument")["root"]["nodeId"], selector="#p-files")["nodeId"]
            b.call("DOM.setFileInputFiles", nodeId=field, files=[os.path.abspath(path)])
            for end in ("answer", "picture"):
                print("bench page.%s.%s %.0f ms" % (name, end, took(b, end)), flush=True)
            print("# " + b.js("(document.querySelector('#p-answer p') || document.querySelector('#p-status')).textContent"))
            b.wait(MARK % "help", 900)
            for card in ("rtx3090", "a100-40g-sxm", "t4", "l4", "h200"):
                b.js("performance.clearMarks(), performance.mark('vramcast-open'), (e => { e.value = '%s'; e.dispatchEvent(new Event('change', "
                     "{ bubbles: true })); })(document.querySelector('#p-g')), 1" % card)
                print("bench page.%s.whatif.%s %.0f ms" % (name, card, took(b, "answer")), flush=True)
                b.wait(MARK % "picture", 900)
            if os.environ.get("MEMORY_VIZ"):
                start = time.time()
                subprocess.run([sys.executable, os.environ["MEMORY_VIZ"], "memory", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                print("bench memory_viz.%s.memory %.0f ms" % (name, 1000 * (time.time() - start)), flush=True)
    finally:
        b.stop()


main()
