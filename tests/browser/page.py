# SPDX-License-Identifier: Apache-2.0
"""page.py - the page (page/) in a real browser: a file is dropped on it, another card is chosen, keys, a phone, paper. What it
says is what the program says."""
import base64
import gzip
import json
import os
import subprocess
import zipfile

VRAMCAST = os.environ.get("VRAMCAST", "build/vramcast")
PAGE = os.environ.get("PAGE")
TRACE = "traces/lm-train-ctx128.vct"
ANSWER = "document.querySelector('#p-answer > div:last-child').textContent"
STATUS = "document.querySelector('#p-status').textContent"
SLOW = 120  # seconds, on a busy machine
DONE = "performance.getEntriesByName('vramcast-%s').length"
DROP = """(function (list) {
    const data = new DataTransfer();
    for (const [name, text] of list) data.items.add(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], name));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}(%s)), 1"""
SET = """(function (e) { e.%s = %s; e.dispatchEvent(new Event("change", { bubbles: true })); }(document.querySelector(%s))), 1"""
AXE = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(' | ')))"


def said(*words):
    """What the program says, as the page shows it: without the words before a sentence and what to type next."""
    r = subprocess.run([os.path.abspath(VRAMCAST), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return r.stdout.decode()


def drop(b, *files, ends="picture"):
    b.js("performance.clearMarks(), 1")
    b.js(DROP % json.dumps([(name, base64.b64encode(data).decode()) for name, data in files]))
    b.wait(DONE % ends + " || !!document.querySelector('#p-status.p-bad') || " + ("0" if ends else "!!document.querySelector('#p-answer > div')"), SLOW)


def file(path, name=None):
    with open(path, "rb") as f:
        return name or os.path.basename(path), f.read()


def change(b, selector, value, ends="picture", what="value"):
    b.js("performance.clearMarks(), 1")
    b.js(SET % (what, json.dumps(value), json.dumps(selector)))
    b.wait(DONE % ends + " || !!document.querySelector('#p-status.p-bad')", SLOW)


def same(b, check, what, *options):
    first = said("sim", TRACE, *options, "--brief", "--no-advice", "-q").split("\n")[0]
    check(b.name + ": " + what, first in b.js(ANSWER), [first, b.js(ANSWER)])


def answers(b, check):
    b.open(PAGE)
    b.js("""window.asked_ = 0; (function (post) {
        window.Worker.prototype.postMessage = function (m) { window.asked_ += m.words && m.words[0] === "sim" && !m.words[1].startsWith(".idle") ? 1 : 0; return post.apply(this, arguments); };
    }(window.Worker.prototype.postMessage));1""")
    drop(b, file(TRACE))
    same(b, check, "a file that is dropped is answered as by the program")
    check(b.name + ": the engine was asked once", b.js("asked_") == 1, b.js("asked_"))
    for what, option in (("versions", "#p-versions"), ("settings", "#p-confs")):
        check("%s: it offers the program's %s" % (b.name, what), b.js("[...document.querySelectorAll('%s option')].map(o => o.value)" % option) ==
              [line.split()[0] for line in said("list", what).splitlines()] != [])
    change(b, "#p-g", "A100 SXM 40GB")
    same(b, check, "a card as people write it", "-g", "a100-40g-sxm")
    change(b, "#p-g", "a100-40g-sxm", "help")
    same(b, check, "another card, too", "-g", "a100-40g-sxm")
    check(b.name + ": what was stands beside it", "needs" in b.js("document.querySelector('#p-answer > div').textContent"))
    check(b.name + ": the address holds the settings and no data", b.js("location.hash") == "#g=a100-40g-sxm", b.js("location.hash"))
    check(b.name + ": and the line for the shell is there", "vramcast sim lm-train-ctx128.vct -g a100-40g-sxm" ==
          b.js("document.querySelector('#p-command').textContent"))
    check(b.name + ": what would help is there", "fsdp" in b.js("document.querySelector('#help + pre').textContent"))
    b.js("""window.saved_ = []; (function (make) { URL.createObjectURL = function (blob) { saved_.push(blob); return make.call(URL, blob); }; }(URL.createObjectURL));
        document.querySelector('[data-take=json]').click();1""")
    b.wait("saved_.length === 1")
    check(b.name + ": JSON that is taken along is the program's", b.js("saved_[0].text()").replace("lm-train-ctx128.vct", TRACE) ==
          said("sim", TRACE, "-g", "a100-40g-sxm", "--json", "-q").replace("traces/traces", "traces"))
    change(b, "#p-transforms [value=lora]", True, what="checked")
    same(b, check, "a change of the program", "-g", "a100-40g-sxm", "-x", "lora")
    change(b, "[name=conf]", "nonsense:1", "answer")
    check(b.name + ": settings that do not exist are refused in the program's words", "nonsense" in b.js(STATUS), b.js(STATUS))


def looks(b, check):
    b.open(PAGE, "#g=a100-40g-sxm")
    drop(b, file(TRACE), ends="help")
    same(b, check, "a link brings its settings", "-g", "a100-40g-sxm")
    read, plot = "document.querySelector('.i-read').textContent", "document.querySelector('.i-view svg')"
    b.js("%s.scrollIntoView({block: 'center'}), 1" % plot)
    left, top, wide, high = b.js("(r => [r.left, r.top, r.width, r.height])(%s.getBoundingClientRect())" % plot)
    b.drag(left + wide * 0.4, top + high / 2, left + wide * 0.6, top + high / 2)
    check(b.name + ": a range is brushed, beside the settings in the address",
          b.js("location.hash").startswith("#g=a100-40g-sxm&t=") and "-" in b.js("location.hash"), b.js("location.hash"))
    b.click(left + wide * 0.3, top + high / 2)
    check(b.name + ": a click shows the heap there", "in use" in b.js(read))
    b.js("(i => { i.value = 'optimizer'; i.dispatchEvent(new Event('input')); })(document.querySelector('nav + .r-tools input')), 1")
    b.wait("document.querySelectorAll('svg .r-found').length")
    check(b.name + ": a search marks places", True)
    pictures = b.js("[...document.querySelectorAll('figure.r-wide')].map(f => f.dataset.name)")
    check(b.name + ": all pictures are there", {"ledger", "timeline", "flame", "segments", "unused", "lives"} <= set(pictures), pictures)


def keyboard(b, check):
    b.open(PAGE)
    drop(b, file(TRACE))
    seen = []
    b.js("document.activeElement.blur(), 1")
    for _ in range(12):
        b.key("Tab")
        seen.append(b.js("document.activeElement.id || document.activeElement.name || document.activeElement.tagName"))
        if seen[-1] == "p-g":
            break
    b.js("performance.clearMarks(), 1")
    for c in "t4":
        b.key(c)
    b.key("Enter")
    b.wait(DONE % "picture", SLOW)
    same(b, check, "keys alone reach the card and ask", "-g", "t4")
    check(b.name + ": the focus went over", "p-files" in seen and "p-g" in seen, seen)


def packed(path):
    """The same snapshot as it comes: bare, and packed in three ways."""
    bare = os.path.join(os.environ["TMP"], "bare.pickle")
    with open(bare, "wb") as f:
        f.write(gzip.decompress(file(path)[1]))
    subprocess.run(["zstd", "-qf", bare], check=True)
    with zipfile.ZipFile(bare + ".zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(bare, "bare.pickle")
    return [path, bare, bare + ".zst", bare + ".zip"]


def others(b, check):
    b.open(PAGE)
    name = "<img src=x onerror=alert(1)>.vct"
    drop(b, file(TRACE, name))
    check(b.name + ": a hostile name stays text", b.js("document.querySelectorAll('img').length") == 0 and "<img" in b.js("document.querySelector('#p-command').textContent"))
    for path in packed("tests/snapshots/torch-2.9.py.pickle.gz") + ["tests/fuzz/corpus/" + f for f in ("old-profile.json", "rmm.csv", "snapshot.json")]:
        drop(b, file(path))
        first = said("sim", path, "--brief", "--no-advice", "-q").split("\n")[0]
        check("%s: %s is answered as by the program" % (b.name, os.path.basename(path)), len(first) > 20 and first in b.js(ANSWER), [first, b.js(ANSWER), b.js(STATUS)])
    drop(b, *(file("tests/recordings/conv-%d.vct" % n) for n in (4, 6, 16)))
    check(b.name + ": recordings at several values have a slider", b.js("document.querySelector('#p-set input[type=range]').value") == "16", b.js(STATUS))
    change(b, "#p-set input[type=number]", "8")
    check(b.name + ": which asks for another value", "batch=8" in b.js("document.querySelector('#p-command').textContent") and
          "GiB" in b.js(ANSWER) or "MiB" in b.js(ANSWER), b.js(ANSWER))
    drop(b, *(file("tests/ladders/recordings/bert-cls_batch%04d_torch2.9.1.vct" % n, "rank%d.vct" % n) for n in (8, 12)))
    check(b.name + ": others are ranks", "rank" in b.js(ANSWER), b.js(ANSWER) or b.js(STATUS))
    drop(b, ("message.txt", file("examples/oom.txt")[1]), ends="")
    check(b.name + ": a message is explained", "What to try" in b.js(ANSWER), b.js(ANSWER) or b.js(STATUS))
    drop(b, ("notes.txt", b"nothing of that kind"))
    check(b.name + ": what is no recording is refused in a sentence", "notes.txt" in b.js(STATUS), b.js(STATUS))
    b.js(DROP % json.dumps([("lm.vct", base64.b64encode(file(TRACE)[1]).decode())]))
    b.js("document.querySelector('#p-stop').click(), 1")
    check(b.name + ": stop stops", b.js(STATUS) == "Stopped.", b.js(STATUS))


def accessible(b, check, what):
    path = os.environ.get("AXE", "")
    if not os.path.exists(path):
        check("%s: axe-core (%s) # SKIP cannot fetch it" % (b.name, what), True)
        return
    with open(path, encoding="utf-8") as f:
        b.js(f.read() + ";1")
    found = b.js(AXE)
    check("%s: axe finds nothing (%s)" % (b.name, what), found == [], found)


def widths(b, check):
    b.open(PAGE)
    accessible(b, check, "empty")
    drop(b, file(TRACE), ends="help")
    b.js("document.querySelector('#p-changes').open = true, 1")
    accessible(b, check, "answered")
    b.js("[...document.querySelectorAll('nav button')][0].click(), 1")
    check(b.name + ": it goes dark", b.js("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)")
    accessible(b, check, "dark")
    b.size(390, 844)
    check(b.name + ": on 390 px nothing leaves the page", b.js("document.documentElement.scrollWidth <= innerWidth"), b.js("document.documentElement.scrollWidth"))
    b.size(1240, 900)
    check(b.name + ": it prints", b.pdf()[:4] == b"%PDF")


def live(b, check):
    path = os.path.join(os.environ["TMP"], "live.html")
    subprocess.run([VRAMCAST, "report", "--ask", TRACE, "-g", "a100-40g-sxm", "-o", path], check=True)
    b.open(path)
    b.wait(DONE % "picture", SLOW)
    same(b, check, "a live report answers", "-g", "a100-40g-sxm")
    change(b, "#p-g", "h200")
    same(b, check, "and can be asked", "-g", "h200")


def drive(b, check):
    b.size(1240, 900)
    for part in (answers, looks, keyboard, others, widths, live):
        try:
            part(b, check)
        except AssertionError as e:
            check("%s: the page goes through %s" % (b.name, part.__name__), False, [e, b.js(STATUS)])
        check("%s: nothing is said on the console (%s)" % (b.name, part.__name__), not b.console(), b.console())
    fetched = b.js("performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('blob:'))")
    check(b.name + ": the page fetched nothing", not fetched and not b.outside, [fetched, b.outside])
