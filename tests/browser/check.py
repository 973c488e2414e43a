#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py - the report in a real browser: it is opened, dragged over, clicked, filtered, steered by keys, printed and linked
to, as by a person. Prints TAP. VRAMCAST and BUILD name what was built, TMP a folder that is empty."""
import json
import os
import re
import subprocess
import sys
import time
import zlib

import browsers
import page

TMP = os.environ["TMP"]
VRAMCAST = os.environ.get("VRAMCAST", "build/vramcast")
MAKE = os.path.join(os.environ.get("BUILD", "build"), "tests/make-extreme")
tests = failed = 0


def check(what, ok, why=""):
    global tests, failed
    tests += 1
    failed += not ok
    print(("ok" if ok else "not ok"), tests, "-", what)
    if not ok:
        print("#  ", str(why)[:600])
    sys.stdout.flush()


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout.decode()


def report(name, *words):
    path = os.path.join(TMP, name)
    run(VRAMCAST, "report", *words, "-o", path)
    return path


# How long from an input event to the end of the frame that shows what it did: the handler, style, layout and paint.
CLOCK = """
window.frames_ = [];
for (const type of ["pointerup", "keydown", "input", "change"])
    addEventListener(type, function () {
        const start = performance.now();
        requestAnimationFrame(function () {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => frames_.push(performance.now() - start);
            channel.port2.postMessage(0);
        });
    }, true);
window.shown_ = [];
new PerformanceObserver(list => list.getEntries().forEach(e => shown_.push(e.duration))).observe({ type: "event", durationThreshold: 16 });1"""
PLOT = "document.querySelector('.i-view svg')"
TICKS = "[...%s.querySelectorAll('text')].map(t => t.textContent).filter(t => / (s|ms|\\u00b5s)$/.test(t))" % PLOT
READ = "document.querySelector('.i-read').textContent"
HEAP = """(function () {
    const t = document.querySelector('.i-heap table'), cell = r => r.cells[2].textContent, foot = [...t.tFoot.rows];
    return { caption: t.caption.textContent, rows: [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)), foot: foot.map(cell) };
}())"""


def box(b):
    b.js("%s.scrollIntoView({block: 'center'}), 1" % PLOT)
    return b.js("(r => [r.left, r.top, r.width, r.height])(%s.getBoundingClientRect())" % PLOT)


def at(b, x, y):
    """A place in the instrument: parts of its plot, from 0 to 1 across and of its height down."""
    left, top, wide, high = box(b)
    return left + 62 + x * (wide - 72), top + y * high


def size(text):
    m = re.search(r"([\d.]+) (GiB|MiB|KiB|B)", text)
    return float(m.group(1)) * {"GiB": 2 ** 30, "MiB": 2 ** 20, "KiB": 1024, "B": 1}[m.group(2)]


def sizes_add_up(heap):
    return abs(sum(size(t) for t in heap["foot"][:-1]) - size(heap["foot"][-1])) <= 0.01 * size(heap["foot"][-1]) + 2048


def frame(b, act):
    b.js("frames_.length = 0, 1")
    act()
    b.wait("frames_.length > 0")
    return b.js("frames_[0]")


def median(list_):
    return sorted(list_)[len(list_) // 2]


def pages_of(pdf):
    """Pages of a PDF, also where its objects are packed."""
    parts = [pdf]
    for m in re.finditer(rb"stream\r?\n", pdf):
        try:
            parts.append(zlib.decompressobj().decompress(pdf[m.end():]))
        except zlib.error:
            pass
    return sum(len(re.findall(rb"/Type\s*/Page[^s]", p)) for p in parts)


def opens(b, path, fragment=""):
    b.open(path, fragment)
    b.wait("performance.getEntriesByName('vramcast-instrument').length")
    b.js(CLOCK)


def is_quick(b, path):
    ready = []
    for _ in range(5):
        b.open(path)
        ready.append(b.wait("(e => e.length && e[0].startTime)(performance.getEntriesByName('vramcast-instrument'))"))
    check("%s: a million events can be used after %.0f ms (five times: %s)" % (b.name, min(ready), ", ".join("%.0f" % r for r in ready)),
          min(ready) < 1000, ready)
    b.js(CLOCK)
    took = []
    for k in range(9):
        took.append(frame(b, lambda: b.drag(*at(b, 0.1 + 0.05 * k, 0.3), *at(b, 0.5 + 0.05 * k, 0.3))))
        took.append(frame(b, lambda: b.key("Escape")))
    shown = b.js("shown_")
    busy = os.getloadavg()[0] > os.cpu_count()
    check("%s: a range is drawn anew in %.0f ms (median of 18; least %.0f, most %.0f; by the browser's own clock %s)%s" % (
        b.name, median(took), min(took), max(took), "%.0f" % median(shown) if shown else "under 16",
        "; the machine is busy, judged by the least" if busy else ""), (min(took) if busy else median(took)) < 50, took)


def is_an_instrument(b, path, peak):
    opens(b, path)
    whole = b.js(TICKS)
    b.js("document.querySelector('.i-all button[title=p]').click()")
    said = b.js(READ)
    check(b.name + ": the cursor at the peak says what sim says is reserved", abs(size(said) / peak["peak_reserved"] - 1) < 0.01, said)
    heap = b.js(HEAP)
    check(b.name + ": the heap at the peak adds up", sizes_add_up(heap) and heap["rows"], heap["foot"])
    b.drag(*at(b, 0.5, 0.3), *at(b, 0.75, 0.3))
    part = b.js(TICKS)
    check(b.name + ": dragging selects a range, and the axes are drawn anew", part and part != whole, [whole, part])
    check(b.name + ": and the link says which", re.match(r"#t=[\d.]+m?s-[\d.]+m?s@", b.js("location.hash")), b.js("location.hash"))
    before = b.js(READ)
    b.click(*at(b, 0.2, 0.7))
    check(b.name + ": a click moves the cursor", b.js(READ) != before, before)
    grown = b.js("(t => [t.hidden, [...t.tFoot.rows].map(r => r.cells[0].textContent)])(document.querySelector('.i-view > table'))")
    check(b.name + ": a range says what grew in it", grown[0] is False and grown[1][-1] == "in use", grown)
    b.js("document.querySelector('.i-heap tbody tr:last-child button').click()")
    rows = b.js(HEAP)["rows"]
    check(b.name + ": a row of the heap shows its block", rows[-1][2].split()[0] in b.js("document.querySelector('.i-detail').textContent"), rows[-1])
    b.key("Escape")
    b.js("%s.focus(), 1" % PLOT)
    b.key("o")
    at_oom = b.js(READ)
    b.key("ArrowLeft")
    left = b.js(READ)
    b.key("Home")
    check(b.name + ": keys move the cursor", len({at_oom, left, b.js(READ)}) == 3, [at_oom, left])
    b.key("+")
    check(b.name + ": and zoom", b.js(TICKS) != whole, b.js(TICKS))
    b.key("Escape")
    check(b.name + ": and go back to the whole run", b.js(TICKS) == whole, b.js(TICKS))


FLAME = "[...document.querySelectorAll('.i-flame > g')].filter(g => g.querySelector('rect').getAttribute('y') === '0').map(g => g.querySelector('title').textContent)"


def shows_who(b, path):
    """The flame at the cursor, and one step between the lines of the others."""
    opens(b, path)
    b.js("document.querySelector('.i-all button[title=p]').click()")
    boxes, foot = b.js(FLAME), b.js(HEAP)["foot"][-1]
    check(b.name + ": the flame at the cursor is all that is in use", abs(sum(size(t) for t in boxes) / size(foot) - 1) < 0.02, [boxes, foot])
    group = "(function (s) { s.value = '%d'; s.dispatchEvent(new Event('change', { bubbles: true })); }([...document.querySelectorAll('.i-all label')].find(l => l.textContent.startsWith('grouped by')).querySelector('select')))"
    for k, words in enumerate(("", r"stream \d+:", r"(small|large) blocks:")):
        b.js(group % k)
        named = b.js(FLAME)
        check("%s: grouped by %s it is as much" % (b.name, words or "call stack"), abs(sum(size(t) for t in named) / size(foot) - 1) < 0.02 and
              all(re.match(words + "|smaller", t) for t in named), named)
    b.js(group % 0)
    drawn = b.js("[...new Map([...document.querySelectorAll('.i-map rect[data-k]')].map(x => [x.dataset.k, x.textContent])).values()]")
    check(b.name + ": so are the blocks in the segments there", abs(sum(size(t) for t in drawn) / size(foot) - 1) < 0.02, [len(drawn), drawn[:3], foot])
    b.js("document.querySelector('.i-map rect[data-k]').dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    check(b.name + ": a click on one shows it, with its address", re.search("Block .*, at 0x[0-9a-f]{6,}", b.js("document.querySelector('.i-detail').textContent")), drawn[:1])
    whole = b.js(TICKS)
    b.js("document.querySelector('.i-all button[title=s]').click()")
    said = b.js("[...%s.querySelectorAll('text')].map(t => t.textContent)" % PLOT)
    check(b.name + ": one step fills the picture, with the spread of the others", b.js(TICKS) != whole and any("of the other steps" in t for t in said), said)


def filters(b):
    b.key("o")
    all_ = b.js(HEAP)["rows"]
    shapes = "%s.querySelectorAll('path').length" % PLOT
    count = b.js(shapes)
    b.js("(c => { c.click(); })(document.querySelector('.i-kind input')), 1")
    hidden = b.js(HEAP)
    check(b.name + ": a kind that is switched off leaves the heap and the picture",
          all_[0][1] not in {r[1] for r in hidden["rows"]} and b.js(shapes) < count, hidden["rows"][:2])
    b.js("document.querySelector('.i-kind input').click()")
    choose = "(function (s) { s.value = '%s'; s.dispatchEvent(new Event('change', { bubbles: true })); }([...document.querySelectorAll('.i-all label')].find(l => l.textContent.startsWith('blocks of')).querySelector('select')))"
    b.js(choose % 3)
    check(b.name + ": blocks under 16 MiB can be left out", all(size(r[2]) >= 16 << 20 for r in b.js(HEAP)["rows"]), b.js(HEAP)["rows"])
    b.js(choose % 0)
    word = "(function (i) { i.value = %s; i.dispatchEvent(new Event('input', { bubbles: true })); }(document.querySelector('.i-all input[type=search]')))"
    b.js(word % "'optimizer'")
    some = b.js(HEAP)["rows"]
    b.js(word % "'no such function'")
    check(b.name + ": call stacks can be searched", 0 < len(some) and b.js(HEAP)["rows"] == [], len(some))
    b.js(word % "''")
    check(b.name + ": without a filter all is back", b.js(HEAP)["rows"] == all_)


def tables(b):
    b.js("[...document.querySelectorAll('table')].find(t => t.caption.textContent.startsWith('call sites')).classList.add('t_')")
    column = "[...document.querySelectorAll('.t_ tbody tr')].map(r => r.cells[2].textContent)"
    first = [size(t) for t in b.js(column)]
    b.js("document.querySelectorAll('.t_ thead button')[2].click(), document.querySelectorAll('.t_ thead button')[2].click()")
    again = [size(t) for t in b.js(column)]
    check(b.name + ": tables sort by a column, and back", again == sorted(first) and b.js("document.querySelector('.t_ [aria-sort]').getAttribute('aria-sort')")
          == "ascending", again[:5])
    lacking = b.js("""[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent || [...t.querySelectorAll('th')].some(h => !h.scope)).length +
        [...document.querySelectorAll('figure svg[role=img]')].filter(s => !s.getAttribute('aria-label')).length +
        [...document.querySelectorAll('figure[data-name] svg')].filter(s => !document.getElementById(s.getAttribute('aria-describedby')).textContent).length""")
    check(b.name + ": tables have captions and scopes, pictures names and descriptions", lacking == 0, lacking)


def saves(b):
    b.js("""window.saved_ = []; (function (make) { URL.createObjectURL = function (blob) { saved_.push(blob); return make.call(URL, blob); }; }(URL.createObjectURL));
        [...document.querySelectorAll('.i-view .r-tools button')].slice(0, 2).forEach(x => x.click());1""")
    b.wait("saved_.length === 3")
    svg = b.js("saved_[0].text().then(t => (d => [d.documentElement.tagName, d.querySelectorAll('style, pattern, path').length, t.includes('.cw')])"
               "(new DOMParser().parseFromString(t, 'image/svg+xml')))")
    png = b.js("saved_[2].arrayBuffer().then(a => [a.byteLength, ...new Uint8Array(a).slice(1, 4)])")
    check(b.name + ": pictures are saved as SVG and PNG", svg[0] == "svg" and svg[1] > 10 and svg[2] and png[0] > 8000 and png[1:] == [80, 78, 71], [svg, png])


def themes(b):
    paint = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.i-view .bg')).fill]"
    press = "[...document.querySelectorAll('nav button')][0].click()"
    seen = [b.js(paint)]
    for _ in range(3):
        b.js(press)
        seen.append(b.js(paint))
    check(b.name + ": the theme goes dark, light and back, page and pictures together",
          seen[1] == ["rgb(13, 17, 23)", "rgb(13, 17, 23)"] and seen[2] == ["rgb(255, 255, 255)"] * 2 and seen[3] == seen[0], seen)


def links(b, path):
    opens(b, path, "#t=700ms-790ms@760ms")
    check(b.name + ": a link opens at a range and a moment", b.js(TICKS)[0].startswith("700 ms") and "At 760 ms" in b.js(READ), [b.js(TICKS), b.js(READ)])
    b.js("%s.focus(), 1" % PLOT)
    b.key("p")
    peak, where = b.js(READ), b.js("location.hash")
    opens(b, path, where)
    check(b.name + ": a link to the peak opens at the peak", b.js(READ) == peak, [where, peak, b.js(READ)])
    opens(b, path, "#t=795ms")
    check(b.name + ": or at a moment of the whole run", b.js(TICKS)[0].startswith("0 ms") and "At 795 ms" in b.js(READ), b.js(READ))


def is_accessible(b, path):
    """No finding of axe-core, and nothing that scrolls sideways; Firefox' windows are 500 px wide at least."""
    axe = os.environ.get("AXE", "")
    for theme in ("light", "dark"):
        b.theme(theme)
        for width in (1280, 390):
            b.size(width, 900)
            opens(b, path)
            name = "%s: %s, %s, %d px" % (b.name, os.path.basename(path), theme, b.js("innerWidth"))
            check(name + ": nothing leaves the page", b.js("document.documentElement.scrollWidth <= innerWidth"))
            if not os.path.exists(axe):
                check(name + ": axe-core # SKIP cannot fetch it", True)
                continue
            with open(axe, encoding="utf-8") as f:
                b.js(f.read() + ";1")
            found = b.js("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].target.join(' ')]))")
            check(name + ": axe-core finds nothing", found == [], found)
    b.theme("light")
    b.size(1240, 900)


def narrow(b, path):
    b.size(500, 900)
    opens(b, path)
    wide = b.js("document.documentElement.scrollWidth - innerWidth")
    small = b.js("""Math.min(...[...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width).flatMap(s =>
        [...s.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize) * s.getBoundingClientRect().width / s.viewBox.baseVal.width)))""")
    check("%s: on 500 px nothing leaves the page and no text is under 7 px (%.1f)" % (b.name, small), wide <= 0 and small >= 7, [wide, small])
    b.size(1240, 900)


def two_runs(b, path):
    opens(b, path)
    views = b.js("[...document.querySelectorAll('.i-view')].map(v => Math.round(v.getBoundingClientRect().top))")
    check(b.name + ": two runs stand side by side", len(views) == 2 and views[0] == views[1], views)
    check(b.name + ": and nothing leaves the page", b.js("document.documentElement.scrollWidth <= innerWidth"))
    left, top, wide, high = box(b)
    b.drag(left + 62 + wide * 0.2, top + 100, left + 62 + wide * 0.5, top + 100)
    ticks = b.js("[...document.querySelectorAll('.i-view')].map(v => v.querySelector('svg')).map(s => [...s.querySelectorAll('text')].map(t => t.textContent).filter(t => / (s|ms)$/.test(t)).join())")
    check(b.name + ": and share the range", ticks[0] == ticks[1] and not ticks[0].startswith("0 "), ticks)


def printed(b):
    """How many words there are on paper, and those below 8 points: A4 with its margins is 718 pixels wide, one of them 3/4 of a point."""
    b.size(718, 1000)
    b.media("print")
    found = b.js("""(all => [all.length, all.filter(x => x[0] < 7.95)])([...document.querySelectorAll('body *')]
        .filter(x => [...x.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && !x.closest('title, desc, style, script, template') && x.getClientRects().length)
        .map(x => [0.75 * parseFloat(getComputedStyle(x).fontSize) * (x.ownerSVGElement ? x.getScreenCTM().a : 1), x.textContent.trim().slice(0, 40)]))""")
    b.media("")
    b.size(1240, 900)
    return [found[0], found[1][:8]]


def without_script(b, path):
    bare = os.path.join(TMP, "bare.html")
    with open(path, encoding="utf-8") as f, open(bare, "w", encoding="utf-8") as g:
        g.write(re.sub(r"<script>.*?</script>", "", f.read(), flags=re.S))
    b.open(bare)
    seen = b.js("[document.querySelector('h1').textContent, [...document.querySelectorAll('figure')].filter(f => f.getBoundingClientRect().height > 50).length, "
                "document.querySelectorAll('tbody tr').length]")
    check(b.name + ": without the script the verdict, the pictures and the tables are there", "Runs out of memory" in seen[0] and seen[1] >= 6 and seen[2] > 50, seen)


def speaks(b):
    """The check of the check: what a page says on the console is heard."""
    page = os.path.join(TMP, "says.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!DOCTYPE html><p>x<script>console.warn('said'); missing();</script>")
    b.open(page)
    time.sleep(0.3)
    check(b.name + ": what a page says on the console is heard", len(b.console()) == 2, b.console())


def drive(b, paths, peak):
    b.size(1240, 900)
    speaks(b)
    is_quick(b, paths["million"])
    check(b.name + ": nothing is said on the console", not b.console(), b.console())
    is_an_instrument(b, paths["one"], peak)
    filters(b)
    tables(b)
    shows_who(b, paths["steps"])
    opens(b, paths["one"])
    saves(b)
    themes(b)
    links(b, paths["one"])
    narrow(b, paths["one"])
    check(b.name + ": nothing was said on the console", not b.console(), b.console())
    fetched = b.js("performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('blob:'))")
    check(b.name + ": nothing was fetched", not fetched and not b.outside, [fetched, b.outside])
    for name in ("one", "two", "million"):
        is_accessible(b, paths[name])
    two_runs(b, paths["two"])
    check(b.name + ": two runs say nothing on the console either", not b.console(), b.console())
    for name in ("one", "million"):
        opens(b, paths[name])
        pdf = b.pdf()
        pages = pages_of(pdf)
        check("%s: %s prints on at most 6 pages (%d)" % (b.name, name, pages), 1 <= pages <= 6, pages)
        with open(os.path.join(TMP, "%s-%s.pdf" % (b.name, name)), "wb") as f:
            f.write(pdf)
        if hasattr(b, "media"):
            small = printed(b)
            check("%s: and no word of %s has less than 8 points" % (b.name, name), small[0] > 100 and small[1] == [], small)
    without_script(b, paths["one"])


def main():
    trace = "traces/lm-train-ctx128.vct"
    million = os.path.join(TMP, "million.vct")
    print("#", run(MAKE, "a million events", million).strip())
    paths = {"one": report("one.html", trace, "-g", "a100-40g-sxm"), "million": report("million.html", million, "--capacity", "24GiB"),
             "steps": report("steps.html", "tests/recordings/gpt.vct"), "two": report("two.html", trace, "-g", "a100-40g-sxm", "--conf", "", "--conf", "expandable_segments:True")}
    for name in ("one", "million"):
        n = os.path.getsize(paths[name])
        check("the report of %s is at most 1 MB (%d B)" % (name, n), n <= 1000000, n)
    sim = subprocess.run([VRAMCAST, "sim", trace, "-g", "a100-40g-sxm", "--json"], stdout=subprocess.PIPE, check=False)
    peak = json.loads(sim.stdout)["runs"][0]
    for kind in (browsers.Chromium, browsers.Firefox):
        if sys.argv[1:] and kind.__name__.lower() not in sys.argv[1:]:
            continue
        b = kind()
        try:
            drive(b, paths, peak)
            if page.PAGE:
                page.drive(b, check)
        except AssertionError as e:
            check(b.name + ": goes through", False, e)
        finally:
            b.stop()
    print("1..%d" % tests)
    return 1 if failed else 0


sys.exit(main())
