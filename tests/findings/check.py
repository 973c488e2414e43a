#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py FILE... - every sentence of every output is held to the record of the run (findings in JSON), and numbers of the
record to a walk of the recording's own events, from `vramcast dump`. A line of standard input is FILE OPTIONS, too.
--mutate: changes of a record by one unit, and swapped causes, must be noticed. Prints TAP; VRAMCAST and TMP as everywhere."""
import copy
import html
import json
import os
import re
import struct
import subprocess
import sys

TMP = os.environ["TMP"]
VRAMCAST = os.environ.get("VRAMCAST", "build/vramcast")
UNIT = {"EiB": 1 << 60, "PiB": 1 << 50, "TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1, "bytes": 1}
SIZE = r"([\d.,]+)(?: ([EPTGMK]iB|B|bytes))?"
LAST = r"([\d.,]+) ([EPTGMK]iB|B|bytes)" # a line that goes on in the next ends before it


def call(*words):
    return subprocess.run((VRAMCAST,) + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# ---- what is said ----

class Case:
    def __init__(self, path, options):
        self.name, self.said, self.record = " ".join([os.path.basename(path)] + options), [], None
        out = [os.path.join(TMP, "said." + e) for e in ("html", "md", "txt", "svg")]
        for o in out:
            if os.path.exists(o):
                os.unlink(o)
        words = ["sim", path, "--no-advice", "--json"] + options
        for o in out:
            words += ["-o", o]
        p = call(*words)
        if p.returncode not in (0, 3, 6):
            self.why = p.stderr.decode()
            return
        self.whole = json.loads(p.stdout)
        self.record = self.whole["runs"][0]
        for o in out:
            with open(o, encoding="utf-8") as f:
                self.add(os.path.basename(o), f.read())
        lives = os.path.join(TMP, "lives.svg")
        if call("plot", path, "-t", "lives", "-o", lives, *options).returncode == 0:
            with open(lives, encoding="utf-8") as f:
                self.add("lives.svg", f.read())
        self.add("sim", call("sim", path, "--no-advice", *options).stdout.decode())
        for text in self.record["findings"]["text"].values():
            if text:
                self.said.append(("findings.text", text))

    def add(self, where, text):
        self.said += sentences(where, text)


def sentences(where, text):
    said = []
    if where.endswith((".html", ".svg")):
        text = re.sub(r"<(script|style|template).*?</\1>", "", text, flags=re.S)
        parts = re.findall(r"<(?:text|h1|p|title|desc|td|th)\b[^>]*>(.*?)</(?:text|h1|p|title|desc|td|th)>", text, flags=re.S)
        parts = [html.unescape(re.sub(r"<[^>]*>", "", x)).strip() for x in parts]
        for i, x in enumerate(parts): # a label and its value; a sentence that goes on in the next line
            said.append((where, x))
            if i + 1 < len(parts):
                said.append((where, x + " " + parts[i + 1]))
    else:
        for x in re.split(r"(?<!\.)\n\n|\n(?=  )|\n", text):
            said.append((where, " ".join(x.split())))
    return said


def value(text):
    """A value that was varied, as a number: "40G" is 40."""
    return float(re.match(r"[\d.]+", str(text)).group(0))


def holds(judge, m, r):
    try:
        return judge(m, r, r["findings"])
    except (KeyError, TypeError, ValueError):
        return False


def near(text, unit, told):
    """A number as it is written, to half of its last digit (or what is left when it is cut)."""
    text = text.replace(",", "").rstrip(".")
    digits = len(text.split(".")[1]) if "." in text else 0
    return told is not None and abs(float(text) * UNIT[unit] - told) <= 0.51 * UNIT[unit] / 10 ** digits + 1


# Each rule: what is said, and what the record must have for it. `r` is the run, `f` its findings, `m` the groups.
def size(m, i, told, unit=None):
    return near(m.group(i), m.group(i + 1) or unit or "B", told)


def percent(text, part, whole):
    digits = len(text.split(".")[1]) if "." in text else 0
    return whole and abs(float(text) - 100 * part / whole) <= 0.51 / 10 ** digits + 0.06


def count(m, i=1):
    n = int(m.group(i).replace(",", ""))
    return n if m.group(i) == format(n, ",") else None # counts are written in one way


def in_use(r):
    return r["moment"]["reserved"] - r["moment"]["cached"] if "moment" in r else None


def same_step(m, r, f):
    step = m.group("step") if "step" in m.re.groupindex else None
    return step is None or f["step"] is None or int(step) == f["step"]


def when(m, r):
    at = m.group("at")
    if at.startswith("event "):
        return int(at[6:].replace(",", "")) == r["moment"]["event"]
    n, unit = re.match(r"([\d.]+) (s|ms|\u00b5s|min)", at).groups()
    scale = {"s": 1e9, "ms": 1e6, "\u00b5s": 1e3, "min": 6e10}[unit]
    digits = len(n.split(".")[1]) if "." in n else 0
    return abs(float(n) * scale - r["moment"]["elapsed_ns"]) <= 0.51 * scale / 10 ** digits + 1


def phase(m, f):
    said = m.group("phase")
    return not said or not f["phase"] or f["phase"] in said


PHASE = r"(?P<phase>(?: in the \w+(?: pass| step)?| in [^:]*?)?)(?:(?: of| in)? step (?P<step>\d+))?"
AT = r"(?P<at>event [\d,]+|[\d.]+ (?:s|ms|\u00b5s|min)(?: \d+ s)?)"
RULES = [
    (r"^Runs out of memory at " + AT + PHASE + r": " + SIZE + " of " + SIZE + r" in use, " + SIZE + " asked for",
     lambda m, r, f: r["verdict"] == "oom" and when(m, r) and same_step(m, r, f) and phase(m, f) and
     size(m, 4, in_use(r), m.group(7)) and size(m, 6, r["capacity"]) and size(m, 8, r["moment"]["request"])),
    (r"^Fits(?: as far as recorded)?: " + SIZE + " of " + SIZE + " used$",
     lambda m, r, f: r["verdict"] == "fits" and not f["leak_a_step"] and size(m, 1, r["peak_used"], m.group(4)) and size(m, 3, r["capacity"])
     and f["used_low"] == f["used_high"] == r["peak_used"]),
    (r"^Fits(?: as far as recorded)?: " + SIZE + " to " + SIZE + " of " + SIZE + " used$",
     lambda m, r, f: r["verdict"] == "fits" and not f["leak_a_step"] and size(m, 1, f["used_low"], m.group(4)) and size(m, 3, f["used_high"])
     and size(m, 5, r["capacity"])),
    (r"^May fit or run out of memory: " + SIZE + " to " + SIZE + " of " + SIZE + " used",
     lambda m, r, f: r["verdict"] == "undecided" and size(m, 1, f["used_low"], m.group(4)) and size(m, 3, f["used_high"])),
    (r"^Grows by " + SIZE + r" every step: ",
     lambda m, r, f: r["verdict"] == "fits" and size(m, 1, f["leak_a_step"])),
    (r"^Grows by .* used so far, full after ([\d,]+) more$",
     lambda m, r, f: count(m) == f["steps_left"]),
    (r"^Grows by .*, the next step does not fit$", lambda m, r, f: f["steps_left"] == 0),
    (r"^Fits only by emptying the cache ([\d,]+) times?: ",
     lambda m, r, f: r["verdict"] == "flushes" and count(m) == r["flushes"]),
    (r"^Needs " + SIZE + "$", lambda m, r, f: r["verdict"] == "fits" and not f["leak_a_step"] and size(m, 1, r["peak_reserved"])),
    (r"each step keeps " + SIZE + r" that is never freed .*?(?:the card is full after ([\d,]+) more|$)",
     lambda m, r, f: size(m, 1, f["leak_a_step"]) and (not m.group(3) or count(m, 3) == f["steps_left"])),
    (r"(?:^|[Cc]ause:? )demand: " + SIZE + " must be there at once, of " + LAST,
     lambda m, r, f: f["cause"] == "demand" and size(m, 1, f["floor"]) and size(m, 3, f["room"])),
    (r"demand: one request of " + SIZE, lambda m, r, f: f["cause"] == "impossible_request" and size(m, 1, r["moment"]["request"])),
    (r"fragmentation: " + SIZE + " are free, but not in one piece of",
     lambda m, r, f: f["cause"] == "fragmentation" and size(m, 1, r["moment"]["cached"] + min(
         [r["moment"]["device_free"]] + [l - r["moment"]["reserved"] for l in [r["limit"]] if l]))),
    (r"the limit of this process: " + SIZE + " must be", lambda m, r, f: f["cause"] == "limit" and size(m, 1, f["floor"])),
    (r"other processes: they hold ", lambda m, r, f: f["cause"] == "outside"),
    (r"a leak: each step keeps " + SIZE, lambda m, r, f: f["cause"] == "leak" and size(m, 1, f["leak_a_step"])),
    (r"(?:^would help |Would help: |^)at least " + SIZE + " less in use",
     lambda m, r, f: r["verdict"] == "oom" and size(m, 1, f["lacks_low"]) and f["lacks_low"] == f["lacks_high"]),
    (r"(?:^would help |Would help: |^)(?:up to )?" + SIZE + " less in use",
     lambda m, r, f: r["verdict"] in ("oom", "undecided") and size(m, 1, f["lacks_high"]) and
     (f["lacks_low"] == 0 if "up to" in m.group(0) else f["lacks_low"] == f["lacks_high"])),
    (r"(?:^would help |Would help: |^)" + SIZE + " to " + SIZE + " less in use",
     lambda m, r, f: size(m, 1, f["lacks_low"], m.group(4)) and size(m, 3, f["lacks_high"])),
    (r"one piece of " + SIZE + ": ", lambda m, r, f: r["verdict"] in ("oom", "undecided") and f["lacks_high"] == 0 and size(m, 1, r["moment"]["request"])),
    (r"nothing, " + SIZE + " (?:of its limit )?stay free",
     lambda m, r, f: r["verdict"] == "fits" and not f["leak_a_step"] and size(m, 1, f["room"] - r["peak_used"])),
    (r"freeing what each step keeps", lambda m, r, f: f["leak_a_step"] is not None),
    (r"a card with " + SIZE + " or more", lambda m, r, f: not r["capacity"] or r["verdict"] != "fits"),
    (SIZE + " more than the card has", lambda m, r, f: r["verdict"] != "fits" and size(m, 1, f["used_high"] - f["room"])),
    (r"room for its cache, which is emptied ([\d,]+) time", lambda m, r, f: r["verdict"] == "flushes" and count(m) == r["flushes"]),
    (r"^fails at " + AT + ",?" + PHASE + "$",
     lambda m, r, f: r["moment"]["what"] == "oom" and when(m, r) and same_step(m, r, f) and phase(m, f)),
    (r"^fullest at " + AT + ",?" + PHASE + "$",
     lambda m, r, f: r["moment"]["what"] == "peak" and when(m, r) and same_step(m, r, f) and phase(m, f)),
    (r"^held most by .*, " + SIZE + " of " + LAST + "$",
     lambda m, r, f: size(m, 1, r["moment"]["held_most"], m.group(4)) and size(m, 3, r["moment"]["allocated"])),
    (r"^stranded " + SIZE + " of " + SIZE + " cached", lambda m, r, f: size(m, 1, r["moment"]["stranded"], m.group(4)) and size(m, 3, r["moment"]["cached"])),
    (r"^reserved at " + AT + " " + SIZE + "(?:, |$)", lambda m, r, f: when(m, r) and size(m, 2, r["moment"]["reserved"])),
    (r"^reserved at .*, ([\d.]+) % of capacity$", lambda m, r, f: percent(m.group(1), r["moment"]["reserved"], r["capacity"])),
    (r"^in use then " + SIZE + r"(?:, ([\d.]+) % of reserved)?$",
     lambda m, r, f: size(m, 1, in_use(r)) and (not m.group(3) or percent(m.group(3), in_use(r), r["moment"]["reserved"]))),
    (r"^" + SIZE + " asked for do not fit: " + SIZE + r" are cached in [\d,]+ pieces?, the largest " + SIZE + "$",
     lambda m, r, f: size(m, 1, r["oom"]["request"]) and size(m, 3, r["oom"]["free_in_cache"]) and size(m, 5, r["oom"]["largest_free"])),
    (r"^largest free piece " + SIZE + "$", lambda m, r, f: not r["oom"] or size(m, 1, r["oom"]["largest_free"])),
    (r"are free or cached, but the largest cached piece is " + SIZE + "$", lambda m, r, f: size(m, 1, r["oom"]["largest_free"])),
    (r"^cached then " + SIZE + ", ", lambda m, r, f: size(m, 1, r["moment"]["cached"])),
    (r"^cached then .*, largest piece " + SIZE + "$", lambda m, r, f: size(m, 1, r["oom"]["largest_free"])),
    (r"^cached then .*, " + SIZE + " of it stranded$", lambda m, r, f: size(m, 1, r["moment"]["stranded"])),
    (r"^request that failed " + SIZE + "(?: in .*)?, " + SIZE + " free on the device$",
     lambda m, r, f: size(m, 1, r["moment"]["request"]) and size(m, 3, r["oom"]["device_free"])),
    (r"^out of memory at (?:.*event )?([\d,]+)\)?$", lambda m, r, f: count(m) == r["oom"]["event"]),
    (r": fits: " + SIZE + " of " + SIZE + " used at the peak", lambda m, r, f: r["verdict"] == "fits" and size(m, 1, r["peak_used"])),
    (r": fits(?: as far as it was recorded)? only by emptying the cache ([\d,]+) times?: ", lambda m, r, f: r["verdict"] in ("flushes", "undecided") and count(m) == r["flushes"]),
    (r": needs " + SIZE + "(?: as far as it was recorded)? at the peak", lambda m, r, f: size(m, 1, r["peak_used"])),
    (r": undecided: " + SIZE + " to " + SIZE + " of " + SIZE + " used, so it may ",
     lambda m, r, f: r["verdict"] == "undecided" and size(m, 1, f["used_low"]) and size(m, 3, f["used_high"]) and size(m, 5, r["capacity"])),
    (r": runs out of memory .*: " + SIZE + " asked for, " + SIZE + " free on the device",
     lambda m, r, f: r["verdict"] in ("oom", "undecided") and size(m, 1, r["oom"]["request"]) and size(m, 3, r["oom"]["device_free"])),
    (r"^(?:fits|fits, but grows|fits only by flushing the cache|undecided|runs out of memory)$",
     lambda m, r, f: {"fits": "fits", "fits, but grows": "fits", "undecided": "undecided", "runs out of memory": "oom",
                      "fits only by flushing the cache": "flushes"}[m.group(0)] == r["verdict"] and
     ("grows" in m.group(0)) == (r["verdict"] == "fits" and f["leak_a_step"] is not None)),
]
RULES = [(re.compile(p), judge) for p, judge in RULES]


def contradictions(case, record, spoken=None):
    found = []
    for where, text in case.said:
        for rule, judge in RULES:
            m = rule.search(text)
            if not m:
                continue
            if spoken is not None:
                spoken[rule.pattern] = spoken.get(rule.pattern, 0) + 1
            try:
                ok = judge(m, record, record["findings"])
            except (KeyError, TypeError, ValueError) as e:
                ok, text = False, "%s (%r)" % (text, e)
            if not ok:
                found.append("%s: %s" % (where, text[:200]))
    return found


# ---- an independent walk of the events ----

def walk(path, device):
    """The most that is live at once, in units of 512 bytes; calls; what each marked step leaves behind, bytes as asked for.
    What is freed behind the last allocation is freed because the program ends."""
    live, now, most, allocs, frees, marks, born, died, last, allowed = {}, 0, 0, 0, 0, 0, [], {}, 0, None
    p = subprocess.Popen((VRAMCAST, "dump", path), stdout=subprocess.PIPE, text=True)
    for n, line in enumerate(p.stdout):
        w = line.split()
        at = {k: v for k, v in (x.split("=", 1) for x in w[3:] if "=" in x)}
        if w[2] == "mark" and at.get("flags") == "1":
            marks += 1
        if at.get("device") != str(device):
            continue
        if w[2] == "fraction":
            allowed = struct.unpack("d", struct.pack("Q", int(at["size"])))[0]
        elif w[2] == "alloc":
            size = (int(at["size"]) + 511) // 512 * 512
            live[at["id"]] = size
            born.append((at["id"], marks, int(at["size"])))
            now, allocs, last = now + size, allocs + 1, n
            most = max(most, now)
        elif w[2] == "oom": # what was asked for in vain is needed, too
            most = max(most, now + int(at["size"]))
        elif w[2] in ("free", "free_requested") and at.get("id") in live:
            now, frees = now - live.pop(at["id"]), frees + 1
            died[at["id"]] = n
    p.wait()
    kept = {}
    for name, step, size in born:
        if died.get(name, last + 1) > last:
            kept[step] = kept.get(step, 0) + size
    return {"most": most, "allocs": allocs, "frees": frees, "marks": marks, "allowed": allowed, "kept": [kept.get(i, 0) for i in range(1, marks)]}


def walked(case, path):
    t, found, told = case.whole["trace"], [], case.record["findings"]["leak_a_step"]
    w = walk(path, t["device"])
    if t["start"] != "cold" or case.record["cut_short"]:
        return []
    if w["allocs"] != t["allocs"]:
        found.append("%d allocations are walked, %d told" % (w["allocs"], t["allocs"]))
    if w["most"] != case.record["lower_bound"]:
        found.append("%d are live at once, the record says %d" % (w["most"], case.record["lower_bound"]))
    if w["allowed"] and case.record["capacity"] and abs((case.record["limit"] or 0) - w["allowed"] * case.record["capacity"]) > 1:
        found.append("the program allows itself %g of %d, the record says %s" % (w["allowed"], case.record["capacity"], case.record["limit"]))
    # The record counts places that keep something in every step: all that is kept is at least that.
    if told and len(w["kept"]) > 2 and not 0.9 * min(w["kept"]) <= told <= max(w["kept"]):
        found.append("steps keep %s, the record says %d" % (w["kept"], told))
    if not told and len(w["kept"]) > 4 and min(w["kept"]) > 2 << 20:
        found.append("steps keep %s, the record says nothing" % w["kept"])
    return found


# ---- mutations of the record ----

def set_(path, change):
    def act(r):
        at = r
        for k in path[:-1]:
            at = at[k]
        at[path[-1]] = change(at[path[-1]])
    return act


def mutations():
    one = lambda v: v + max(v // 50, 2 << 20) # a unit of the third digit, and more than what is rounded
    f, m = "findings", "moment"
    for cause in ("demand", "fragmentation", "outside", "limit", "leak", "impossible_request"):
        for other in ("demand", "fragmentation"):
            if cause != other:
                yield "cause %s becomes %s" % (cause, other), (lambda r, c=cause: r[f]["cause"] == c), set_((f, "cause"), lambda _, o=other: o)
    for path in ((f, "floor"), (f, "room"), (f, "lacks_high"), (f, "lacks_low"), (m, "request"), (m, "reserved"), (m, "cached"),
                 (m, "allocated"), (m, "held_most"), (m, "stranded"), ("oom", "request"), ("oom", "device_free"), ("peak_used",),
                 ("peak_reserved",), ("capacity",), (f, "used_low"), (f, "used_high"), (f, "leak_a_step")):
        def has(r, p=path):
            for k in p:
                r = r.get(k) if isinstance(r, dict) else None
            return bool(r)
        yield ".".join(path) + " by a unit", has, set_(path, one)
    for path in ((f, "steps_left"), ("flushes",), (m, "event"), (f, "step"), ("oom", "event")):
        def has(r, p=path):
            for k in p:
                r = r.get(k) if isinstance(r, dict) else None
            return bool(r)
        yield ".".join(path) + " by one", has, set_(path, lambda v: v + 1)
    yield "moment.elapsed_ns by a tenth", lambda r: r[m]["elapsed_ns"], set_((m, "elapsed_ns"), lambda v: v * 11 // 10)
    for was, is_ in (("fits", "oom"), ("oom", "fits"), ("flushes", "fits"), ("undecided", "fits")):
        yield "verdict %s becomes %s" % (was, is_), (lambda r, v=was: r["verdict"] == v), set_(("verdict",), lambda _, v=is_: v)
    yield "a leak is forgotten", lambda r: r["verdict"] == "fits" and r[f]["leak_a_step"], set_((f, "leak_a_step"), lambda _: None)
    yield "a leak is invented", lambda r: r["verdict"] == "fits" and not r[f]["leak_a_step"], set_((f, "leak_a_step"), lambda _: 1 << 20)
    yield "another phase", lambda r: r[f]["phase"], set_((f, "phase"), lambda _: "evaluation")


def main():
    mutate, paths = "--mutate" in sys.argv, [a for a in sys.argv[1:] if a != "--mutate"]
    asked = [[p] for p in paths] + ([] if sys.stdin.isatty() else [l.split() for l in sys.stdin if l.strip()])
    cases, spoken, bad, sentences, walks, out = [], {}, [], 0, {}, []
    for path, *options in asked:
        case = Case(path, options)
        if not case.record:
            out.append("%s: %s" % (case.name, case.why.strip()))
            continue
        sentences += len(case.said)
        bad += ["%s: %s" % (case.name, x) for x in contradictions(case, case.record, spoken)]
        if not options or path not in walks:
            walks[path] = True
            bad += ["%s: %s" % (case.name, x) for x in walked(case, path)]
        cases.append(case)
    for x in (bad + out)[:40]:
        print("# " + x)
    print("%s 1 - %d runs of %d recordings, %d sentences of which %d are judged: %d contradictions" % (
        "not ok" if bad or not cases else "ok", len(cases), len(walks), sentences, sum(spoken.values()), len(bad)))
    import several
    beside, heard, wrong = [], {}, []
    for v in several.views(asked):
        beside.append(v)
        wrong += v.judged(v.record, heard)
    for x in wrong[:40]:
        print("# " + x)
    print("%s 2 - %d views of several runs, differences and messages, %d sentences judged: %d contradictions" % (
        "not ok" if wrong else "ok", len(beside), sum(heard.values()), len(wrong)))
    bad += wrong
    silent = [p.pattern for p, _ in RULES if p.pattern not in spoken]
    silent += [p.pattern for k in several.RULES.values() for p, _ in k if p.pattern not in heard]
    for p in silent:
        print("# nobody says: " + p[:80])
    failed = bool(bad) or not cases
    if mutate:
        noticed, tried = 0, 0
        for name, fits, change in mutations():
            found = where = None
            for case in cases:
                if not fits(case.record):
                    continue
                where = where or case.name
                changed = copy.deepcopy(case.record)
                change(changed)
                if contradictions(case, changed):
                    found = case.name
                    break
            if where is None:
                continue
            tried += 1
            noticed += found is not None
            if not found:
                print("# not noticed: %s (%s)" % (name, where))
        changes = {}
        for v in beside:
            for name, record in several.mutations(v):
                changes[name] = changes.get(name) or bool(v.judged(record))
        tried, noticed = tried + len(changes), noticed + sum(changes.values())
        for name in [n for n, seen in changes.items() if not seen]:
            print("# not noticed: " + name)
        print("%s 3 - mutations of the record: %d of %d noticed" % ("ok" if noticed == tried and tried >= 30 else "not ok", noticed, tried))
        failed |= noticed < tried or tried < 30
    print("1..%d" % (3 if mutate else 2))
    sys.exit(failed)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    main()
