# SPDX-License-Identifier: Apache-2.0
"""several.py - what is said of runs beside each other: the titles and panels of compare, advice, ranks, sweep and heat map,
both halves of diff, JUnit, and explain for the message of the run. Each view has what it says and the JSON of the same runs;
judge(view, record) lists what does not agree."""
import json
import os
import re
import struct
import subprocess
import xml.etree.ElementTree as xml

import check

SIZE, TMP, call = check.SIZE, check.TMP, check.call
WORDS = {"fits": "fits", "fits, but grows": "fits", "fits only by flushing the cache": "flushes", "undecided": "undecided",
         "runs out of memory": "oom", "fits as far as recorded": "fits"}
ORDER = ["fits", "flushes", "undecided", "oom"]
KINDS = {"only A makes this allocation": "only_in_a", "only B makes this allocation": "only_in_b", "another size": "size",
         "another stream": "stream", "the same allocation, freed at another place": "life"}


def size(m, i, told, unit=None):
    return check.near(m.group(i), m.group(i + 1) or unit or "B", told)


def best(runs):
    return min(runs, key=lambda r: (ORDER.index(r["verdict"]), r["peak_used"]))


def fits(runs):
    return sum(r["verdict"] == "fits" for r in runs)


percent = check.percent


def any_of(judge):
    return lambda m, runs: any(judge(m, r) for r in runs)


def spare(r):
    high = max(r["peak_used"], (r.get("findings") or {}).get("used_high") or (r["interval"] or [0, 0])[1] - r["peak_reserved"] + r["peak_used"])
    return r["verdict"] == "fits" and (not r["capacity"] or high <= r["capacity"] // 100 * 95)


def number(r, key):
    return check.value(r["vary"][key])


def taken(runs, key, largest):
    """Of what was tried: the largest or smallest value with 5 % to spare."""
    ok = [number(r, key) for r in runs if spare(r)]
    return (max(ok) if largest else min(ok)) if ok else None


def says_value(text, value):
    return text == "none" if value is None else text != "none" and abs(float(text) - value) < 0.006


def rows(m, runs):
    """Each row of a heat map: the first key varies along it, the second names it."""
    along, by = list(runs[0]["vary"])
    for part in m.group("list").split(", "):
        name, value = part.rsplit(": ", 1)
        if not says_value(value, taken([r for r in runs if str(r["vary"][by]).startswith(name)], along, m.group("way") == "largest")):
            return False
    return True


def most_changed(d):
    return max(d["sites"], key=lambda s: abs(s["live_at_peak"]["a"] - s["live_at_peak"]["b"]))


def changed(m, i, site):
    d = site["live_at_peak"]["b"] - site["live_at_peak"]["a"]
    return (m.group(i) == "+") == (d > 0) and size(m, i + 1, abs(d))


def peaks(d):
    return d["a"]["run"]["peak_reserved"], d["b"]["run"]["peak_reserved"]


def tried(m, r):
    a = r["advice"][int(m.group(1)) - 1]
    verdict = {"fits": "fits", "fits, but grows": "fits", "still empties its cache": "flushes", "may fit, undecided": "undecided"}[m.group(3)]
    told = size(m, 6, a["interval"][1]) and size(m, 4, a["interval"][0], m.group(7)) if m.group(6) else size(m, 4, a["peak_reserved"])
    return a["text"] == m.group(2) and a["verdict"] == verdict and told


def counted(m, r):
    sure = [a for a in r["advice"] if a["verdict"] == "fits"]
    may = [a for a in r["advice"] if a["verdict"] == "undecided"]
    first = (sure or may or [{"text": ""}])[0]["text"]
    return int(m.group(1)) == len(sure if m.group(2) == "would" else may) and int(m.group(3) or 0) == (len(may) if sure else 0) and \
        (first.startswith(m.group(4) or "") or m.group(4).startswith(first[:140])) # a title that is wrapped


def asked(r):
    return r["oom"]["alloc_size"] or r["oom"]["rounded"]


def mean(runs):
    return sum(r["peak_reserved"] // len(runs) for r in runs)


def most(runs):
    return max(r["peak_reserved"] for r in runs)


RULES = {
    "several": [ # whatever has panels
        (r"^(" + "|".join(sorted(WORDS, key=len, reverse=True)) + r"), peak ([\d.]+) %$",
         any_of(lambda m, r: WORDS[m.group(1)] == r["verdict"] and ("grows" in m.group(1)) == (r["verdict"] == "fits" and r["findings"]["leak_a_step"] is not None)
                and percent(m.group(2), r["peak_used"], r["capacity"]))),
        (r"^out of memory(?: at .*)?$", any_of(lambda m, r: r["oom"] is not None)),
        (r"^undecided, ([\d.]+) % to ([\d.]+) %$",
         any_of(lambda m, r: r["verdict"] == "undecided" and percent(m.group(1), r["findings"]["used_low"], r["capacity"])
                and percent(m.group(2), r["findings"]["used_high"], r["capacity"]))),
        (r"^reserved " + SIZE + ", allocated " + SIZE + "(?:$|, at most)",
         any_of(lambda m, r: size(m, 1, r["peak_reserved"]) and size(m, 3, r["peak_allocated"]))),
    ],
    "compare": [
        (r"^Of (\d+) only .* fits: " + SIZE + " used", lambda m, x: int(m.group(1)) == len(x) and fits(x) == 1 and size(m, 2, best(x)["peak_used"])),
        (r"^(\d+) of (\d+) fit\. Least is needed by .*: " + SIZE,
         lambda m, x: (int(m.group(1)), int(m.group(2))) == (fits(x), len(x)) and size(m, 3, best(x)["peak_used"])),
        (r"^Least is needed by .*: " + SIZE, lambda m, x: not all(r["capacity"] for r in x) and size(m, 1, best(x)["peak_used"])),
        (r", and it grows every step$", lambda m, x: best(x)["findings"]["leak_a_step"] is not None),
    ],
    "advice": [
        (r"^(\d+) changes? (would|may) make it fit(?:, (\d+) more may)?(?:; the cheapest: (.*))?$", lambda m, x: counted(m, x[0])),
        (r"^reserved " + SIZE + ", allocated ", lambda m, x: any(size(m, 1, r["peak_reserved"]) for r in x + x[0]["advice"])),
        (r"^(fits|fits, but grows|undecided)(?:, peak [\d.]+ %|, [\d.]+ % to [\d.]+ %)$",
         lambda m, x: any(a["verdict"] == WORDS[m.group(1)] for a in x + x[0]["advice"]) and ("grows" in m.group(1)) == ("fits" in m.group(1) and x[0]["findings"]["leak_a_step"] is not None)),
        (r"^No change makes it fit$", lambda m, x: not [a for a in x[0]["advice"] if a["verdict"] in ("fits", "undecided")]),
        (r"^(\d+)\. (.*): (fits|fits, but grows|still empties its cache|may fit, undecided), " + SIZE + "(?: to " + SIZE + ")? reserved", lambda m, x: tried(m, x[0])),
    ],
    "ranks": [
        (r" peaks (\d+) % above the mean of (\d+)", lambda m, x: int(m.group(2)) == len(x) and abs(int(m.group(1)) - 100 * (most(x) - mean(x)) / mean(x)) <= 0.51),
        (r"^All (\d+) peak within 1 %", lambda m, x: int(m.group(1)) == len(x) and (most(x) - mean(x)) * 200 < mean(x) * 1.01),
        (r"^largest peak " + SIZE + ", ", lambda m, x: size(m, 1, most(x))),
        (r"^smallest peak " + SIZE + ", mean " + SIZE + "$", lambda m, x: size(m, 1, min(r["peak_reserved"] for r in x)) and size(m, 3, mean(x))),
        (r"^imbalance ([\d.]+) % of the largest over the mean$", lambda m, x: percent(m.group(1), most(x) - mean(x), mean(x))),
        (r"^run out of memory (\d+) of (\d+), ", lambda m, x: (int(m.group(1)), int(m.group(2))) == (sum(r["verdict"] == "oom" for r in x), len(x))),
        (r"(?:; all of them|, and) runs? out of memory$", lambda m, x: any(r["verdict"] == "oom" for r in x)),
        (r"^All .*, and run out of memory$", lambda m, x: all(r["verdict"] == "oom" for r in x)),
        (r"; (\d+) of them runs? out of memory$", lambda m, x: int(m.group(1)) == sum(r["verdict"] == "oom" for r in x)),
        (r"^([+\u2212])" + SIZE + " to the mean$",
         lambda m, x: any((r["peak_reserved"] >= mean(x)) == (m.group(1) == "+") and size(m, 2, abs(r["peak_reserved"] - mean(x))) for r in x)),
    ],
    "sweep": [
        (r"^The (?P<way>largest|smallest) (?P<key>\S+) tried that fits(?: on (?!.*: .*: ).*)? with 5 % to spare: (?P<value>[\d.]+|none)$",
         lambda m, x: says_value(m.group("value"), taken(x, list(x[0]["vary"])[0], m.group("way") == "largest"))),
    ],
    "heatmap": [(r"^The (?P<way>largest|smallest) (?P<key>\S+) tried that fits with 5 % to spare: (?P<list>[^,:]+: (?:none|[\d.]+)(?:, [^,:]+: (?:none|[\d.]+))*)(?:, \.\.\.)?(?: |$)", rows)],
    "diff": [
        (r"^B needs as much as A: " + SIZE, lambda m, d: peaks(d)[0] == peaks(d)[1] and size(m, 1, peaks(d)[0])),
        (r"the requests are (not )?the same", lambda m, d: bool(m.group(1)) != d["same_requests"]),
        (r"^B needs (more|less) than A: " + SIZE + " -> " + SIZE + r" reserved at the peak \(([+-][\d.]+) %\)",
         lambda m, d: (m.group(1) == "more") == (peaks(d)[1] > peaks(d)[0]) and size(m, 2, peaks(d)[0]) and size(m, 4, peaks(d)[1]) and
         abs(float(m.group(6)) - 100 * (peaks(d)[1] - peaks(d)[0]) / peaks(d)[0]) <= 0.051),
        (r"^B needs " + SIZE + " (more|less) than A: " + SIZE + " instead of " + SIZE + "$",
         lambda m, d: (m.group(3) == "more") == (peaks(d)[1] > peaks(d)[0]) and size(m, 1, abs(peaks(d)[1] - peaks(d)[0])) and
         size(m, 4, peaks(d)[1]) and size(m, 6, peaks(d)[0])),
        (r"; most of the change is at (.*) \(([+-])" + SIZE + r" at the peak\)$", lambda m, d: m.group(1) == most_changed(d)["site"] and changed(m, 2, most_changed(d))),
        (r"^(?:The first difference|Where they part): (" + "|".join(KINDS) + ")", lambda m, d: KINDS[m.group(1)] == d["first_difference"]["kind"]),
    ],
    "top": [
        (r"^runs out in about ([\d,]+) steps \(in (\d+) (seconds|minutes|hours)\), because ",
         lambda m, x: check.count(m) == x[0]["findings"]["steps_left"] and
         abs(int(m.group(2)) * SECONDS[m.group(3)] - check.count(m) * A_STEP) <= SECONDS[m.group(3)] / 2),
        (r"^the next step does not fit, because ", lambda m, x: x[0]["findings"]["steps_left"] == 0),
        (r"^grows by " + SIZE + " a step, because ", lambda m, x: x[0]["findings"]["steps_left"] is None and size(m, 1, x[0]["findings"]["leak_a_step"])),
        (r", because \S+ \S+ keeps " + SIZE + " a step$", lambda m, x: size(m, 1, x[0]["findings"]["leak_a_step"])),
    ],
    "junit": [(r"^(fits|flushes|undecided|oom)\t(.*)$", any_of(lambda m, r: m.group(1) == r["verdict"] and m.group(2) == r["findings"]["text"]["answer"]))],
    "explain": [(r"^(request|free|allocated)\t(\d+)\t(\d+)$", lambda m, x: abs(int(m.group(2)) - {
        "request": asked(x[0]), "free": x[0]["oom"]["device_free"], "allocated": x[0]["moment"]["allocated"]}[m.group(1)]) <= int(m.group(3)) + 1),
        # One request, not the whole run: more may be live later, and what a process holds beside PyTorch is nobody's. Hundredths are added up.
        (r"^Cause: demand: " + SIZE + " must be there at once, of " + check.LAST, lambda m, x: x[0]["findings"]["cause"] not in ("fragmentation", "impossible_request")
         and check.UNIT[m.group(2)] * (float(m.group(1)) - 0.05) <= x[0]["findings"]["floor"] and size(m, 3, x[0]["capacity"])),
        (r"^Cause: demand: one request of " + SIZE, lambda m, x: x[0]["findings"]["cause"] == "impossible_request" and size(m, 1, asked(x[0]))),
        (r"^Cause: fragmentation: " + SIZE + " are free, but not in one piece of " + check.LAST, lambda m, x: size(m, 3, asked(x[0])) and
         abs(float(m.group(1)) * check.UNIT[m.group(2)] - x[0]["oom"]["free_in_cache"] - x[0]["oom"]["device_free"]) < 0.03 * check.UNIT[m.group(2)]),
        (r"^Cause: other processes: they hold ", lambda m, x: x[0]["findings"]["cause"] == "outside"),
        (r"^Would help: at least " + SIZE + " less in use", lambda m, x: x[0]["findings"]["lacks_high"] > 0)],
}
RULES = {k: [(re.compile(p), f) for p, f in v] for k, v in RULES.items()}
SECONDS, A_STEP = {"seconds": 1, "minutes": 60, "hours": 3600}, 0.5
FACTS = ("compare", "advice", "ranks", "diff")


class View:
    def __init__(self, kind, name, said, record):
        self.kind, self.name, self.said, self.record = kind, name, said, record

    def judged(self, record, spoken=None):
        found = []
        own = RULES[self.kind] + (RULES["several"] if self.kind == "compare" else [])
        runs = record["runs"] if self.kind == "diff" else record
        for where, text in self.said:
            for rule, judge in own + (check.RULES if self.kind in FACTS else []):
                m = rule.search(text)
                if not m:
                    continue
                if spoken is not None:
                    spoken[rule.pattern] = spoken.get(rule.pattern, 0) + 1
                try: # what is said of one of several is true of one of them
                    ok = judge(m, record) if (rule, judge) in own else any(check.holds(judge, m, r) for r in runs)
                except (KeyError, TypeError, ValueError, IndexError) as e:
                    ok, text = False, "%s (%r)" % (text, e)
                if not ok:
                    found.append("%s: %s: %s" % (self.name, where, text[:200]))
        return found


def answer(*words):
    p = call(*words, "--json")
    return json.loads(p.stdout) if p.returncode in (0, 3, 4, 6) and p.stdout else None


def picture(kind, *words):
    to = os.path.join(TMP, kind + ".svg")
    if os.path.exists(to):
        os.unlink(to)
    p = call(*words, "-o", to)
    if not os.path.exists(to):
        return None
    with open(to, encoding="utf-8") as f:
        return check.sentences(kind + ".svg", f.read()), p.stdout.decode()


def runs_view(kind, path, options, more):
    got = answer("sim", path, *more, *options)
    drawn = got and picture(kind, "plot", path, "-t", kind, *[o for o in more if o != "--no-advice"], *options)
    return [View(kind, " ".join([kind, os.path.basename(path)] + options), drawn[0], got["runs"])] if drawn else []


def junit(path, options):
    to, got = os.path.join(TMP, "said.xml"), answer("sim", path, "--no-advice", *options)
    if not got:
        return []
    call("sim", path, "--no-advice", *options, "-o", to)
    said = []
    for case in xml.parse(to).getroot():
        for at in case:
            verdict = {"failure": at.get("type"), "skipped": "undecided"}.get(at.tag)
            if verdict:
                said.append(("said.xml", verdict + "\t" + at.get("message")))
            elif at.tag == "system-out" and got["runs"][0]["verdict"] == "fits":
                said.append(("said.xml", "fits\t" + at.text.rsplit("; level", 1)[0]))
    os.unlink(to)
    return [View("junit", "junit " + os.path.basename(path), said, got["runs"])]


def explain(path, options):
    got = answer("sim", path, "--no-advice", *options)
    message = got and (got["runs"][0]["oom"] or {}).get("message")
    if not message or got["runs"][0]["model"] != "torch":
        return []
    p = subprocess.run((check.VRAMCAST, "explain", "--json"), input=message.encode(), stdout=subprocess.PIPE)
    told = json.loads(p.stdout) if p.returncode == 0 else {"figures": {}, "meaning": []}
    said = [("explain", "%s\t%d\t%d" % (k, f["bytes"], f["plus_minus"])) for k, f in told["figures"].items() if f and k in ("request", "free", "allocated")]
    said += [("explain", x) for x in told["meaning"]]
    return [View("explain", "explain " + os.path.basename(path), said, got["runs"])]


def top(path, options):
    """A page of a process that is where the record is: its words are held to the record, too."""
    got = answer("sim", path, "--no-advice", *options)
    r, folder = got and got["runs"][0], os.path.join(TMP, "live.vct.journal")
    if not r or r["findings"]["leak_a_step"] is None:
        return []
    f, left = r["findings"], r["findings"]["steps_left"]
    page = struct.pack("=QIIqq9Q3d", 0x3145564c52435656, 0, 1, 1, -1, r["peak_reserved"], r["peak_allocated"], r["capacity"] or 0, 0, r["peak_allocated"],
                       r["peak_reserved"], 0, 0, 20, A_STEP, f["leak_a_step"], -1 if left is None else left)
    page += struct.pack("=dQ120s", f["leak_a_step"], 0, b"train.py:12 log") + bytes(3 * 136 + 8)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "1.top"), "wb") as to:
        to.write(page[:-8] + b"\1" + bytes(7))
    said = [("top", " ".join(x.split())) for x in call("top", "--once", folder[:-8]).stdout.decode().split("\n")]
    return [View("top", "top " + os.path.basename(path), said, got["runs"])]


def diff(a, b):
    got, drawn = answer("diff", a, b, "--sites", "0"), picture("diff", "diff", a, b)
    if got:
        got["runs"] = [answer("sim", x, "--no-advice")["runs"][0] for x in (a, b)]
    return [View("diff", "diff %s %s" % (os.path.basename(a), os.path.basename(b)),
                 drawn[0] + check.sentences("diff", drawn[1]), got)] if got and drawn else []


def devices(path, options):
    got = answer("info", path)
    runs = [answer("sim", path, "--no-advice", "--device", str(d["device"]), *options)["runs"][0] for d in (got or {}).get("devices", [])]
    drawn = len(runs) > 1 and picture("ranks", "plot", path, "-t", "ranks", *options)
    return [View("ranks", "ranks " + os.path.basename(path), drawn[0], runs)] if drawn else []


def swept(kind, path, *options):
    to = os.path.join(TMP, "runs.jsonl")
    if os.path.exists(to):
        os.unlink(to)
    call("sweep", path, *options, "-q", "-o", to)
    with open(to, encoding="utf-8") as f:
        runs = [json.loads(line) for line in f]
    return [View(kind, " ".join([kind, os.path.basename(path)] + list(options)), picture(kind, "plot", to)[0], runs)]


CONFS = ["--conf", "", "--conf", "expandable_segments:True", "--conf", "max_split_size_mb:64", "--no-advice"]


def views(asked):
    """Of each recording and its options; of the others once."""
    seen = set()
    for path, *options in asked:
        yield from runs_view("compare", path, options, [o for o in CONFS])
        yield from junit(path, options)
        yield from explain(path, options)
        yield from top(path, options)
        if options:
            yield from runs_view("advice", path, options, [])
        if path not in seen:
            yield from devices(path, [])
            yield from devices(path, ["-g", "t4"])
            seen.add(path)
    base, head = ("tests/python/recordings/%s.vct" % n for n in ("base", "head"))
    yield from diff(base, head) + diff(head, base) + diff(base, base)
    yield from diff("tests/recordings/conv-4.vct", "tests/recordings/conv-16.vct")
    lm = "traces/lm-train-ctx128.vct"
    yield from swept("sweep", lm, "--vary", "capacity=40G,48G,56G,64G")
    yield from swept("sweep", "traces/attention.vct", "--vary", "capacity=1G,2G,4G,8G")
    ladder = ["tests/ladders/recordings/gpt-amp_batch%04d_torch2.9.1.vct@batch=%d" % (n, n) for n in (4, 8)]
    for card in ("t4", "l4"):
        yield from swept("sweep", *ladder, "--vary", "batch=4,8,12,16,20,24,32", "-g", card, "--by", "recordings")
    yield from swept("heatmap", *ladder, "--vary", "batch=4,8,12,16,20,24", "--vary", "gpu=t4,l4", "--by", "recordings")


def mutations(view):
    """Copies of the record with one thing wrong that the view speaks of."""
    import copy
    for name, change in MUTATIONS.get(view.kind, []):
        r = copy.deepcopy(view.record)
        try:
            if change(r):
                yield "%s: %s" % (view.kind, name), r
        except (KeyError, TypeError, IndexError):
            pass


def more(runs, key):
    for r in runs:
        r[key] += max(r[key] // 20, 8 << 20)
    return True


def swap(runs):
    was = [r["verdict"] for r in runs]
    for r in runs:
        r["verdict"] = "oom" if r["verdict"] == "fits" else "fits"
    return "fits" in was


def first_advice(runs):
    a = runs[0]["advice"]
    a[0]["verdict"], a[0]["text"] = ("undecided" if a[0]["verdict"] == "fits" else "fits"), a[0]["text"]
    return True


def other_site(d):
    most_changed(d)["site"] = "elsewhere.py:1"
    return not d["same_requests"]


def other_kind(d):
    d["first_difference"]["kind"] = "life" if d["first_difference"]["kind"] != "life" else "size"
    return True


def larger(d):
    d["b"]["run"]["peak_reserved"] += max(d["b"]["run"]["peak_reserved"] // 20, 8 << 20)
    return True


def renamed(runs):
    for r in runs:
        r["findings"]["text"]["answer"] += "."
    return bool(runs)


def of_leak(key):
    def act(runs):
        if runs[0]["findings"][key]:
            runs[0]["findings"][key] += 1 if key == "steps_left" else max(runs[0]["findings"][key] // 50, 1 << 20)
            return True
    return act


def asked_more(runs):
    for k in ("alloc_size", "rounded", "device_free"):
        runs[0]["oom"][k] += runs[0]["oom"][k] // 20 + (8 << 20)
    return True


MUTATIONS = {
    "compare": [("verdicts swapped", swap), ("peak_used", lambda r: more(r, "peak_used")), ("peak_reserved", lambda r: more(r, "peak_reserved"))],
    "advice": [("the first advice's verdict", first_advice)],
    "ranks": [("peak_reserved of the first", lambda r: more(r[:1], "peak_reserved")), ("verdicts swapped", swap)],
    "sweep": [("verdicts swapped", swap)], "heatmap": [("verdicts swapped", swap)],
    "diff": [("the call site", other_site), ("the kind of the difference", other_kind), ("peak_reserved of B", larger)],
    "top": [("leak_a_step by a unit", of_leak("leak_a_step")), ("steps_left by one", of_leak("steps_left"))],
    "junit": [("the answer", renamed), ("verdicts swapped", swap)], "explain": [("the request", asked_more)],
}
