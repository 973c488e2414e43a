# SPDX-License-Identifier: Apache-2.0
"""run.py LIST - are deliberate mistakes noticed by `make check`?

One copy of the tree counts which lines each test of `make check` reaches. Then each mistake of LIST is made in a copy,
and the tests that reach its line run until one fails, the quickest first; at last the sanitized copies of the unit tests
among them. A compiler that refuses notices, too. A line of LIST is, between tabs: room, file, text as it is (once in
the file), text as it becomes, [name].
  QUICK=1  only tests below two seconds, nothing sanitized     ROOM=x  only rooms whose name contains x     JOBS=2
  OUT=FILE the table       MOST=N  only the first N       ONLY=x  only lines that contain x
A test that fails on the tree as it is is left out, and said. Browsers and checks of style are not run."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

JOBS, QUICK, CC = int(os.environ.get("JOBS", 2)), os.environ.get("QUICK"), os.environ.get("CC", "cc")
SAN = "build-address-undefined"
SLOW = 15 # seconds: a sanitized copy of a test that takes so long is not run
UNITS = re.compile(r"build/tests/(test_|conformance)")
# make check builds everything that its tests need; with COV=0 no sanitized copy.
EVERYTHING = ["check-all", "COV=0", "RUN_TESTS=exit;"]
WRAPPER = """#!/bin/sh
# Counts lines of the files that mistakes are made in; what is linked needs gcov.
case " $* " in *" -nostdlib "*) exec {cc} "$@" ;; *" -c "*) ;; *) exec {cc} "$@" --coverage ;; esac
for a; do case " {files} " in *" $a "*) CCACHE_DISABLE=1 exec {cc} "$@" --coverage ;; esac; done
exec {cc} "$@"
"""


def mistakes(path):
    rows = []
    for line in Path(path).read_text().splitlines():
        f = line.split("\t")
        if line.startswith("#") or len(f) < 4 or os.environ.get("ROOM", "") not in f[0] or os.environ.get("ONLY", "") not in line:
            continue
        rows.append(dict(room=f[0], file=f[1], old=f[2], new=f[3], name=f[4] if len(f) > 4 else f"{f[2]}  ->  {f[3]}"))
    return rows[:int(os.environ.get("MOST", 100000))]


def environment(**more):
    drop = "MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES T F V COV SAN BUILD VRAMCAST UPDATE TIMES".split()
    env = {k: v for k, v in os.environ.items() if k not in drop}
    return {**env, "DEPS": "skip", "CCACHE_NOHASHDIR": "1", "CFLAGS": "-O1", "STOP": "1", **more}


class Tree:
    """A copy of the tree that can be built and tested."""

    def __init__(self, at, cc=CC):
        self.at, self.cc = at, cc
        at.mkdir()
        names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, check=True).stdout
        subprocess.run(["sh", "-c", "tar cf - -T - 2> /dev/null | tar xf - -C \"$0\"", str(at)], input=names, check=True)

    def build(self, *targets, **more):
        return subprocess.run(["make", "-s", "-j1", "CC=" + self.cc, *targets], cwd=self.at, env=environment(**more),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def passes(self, test, limit, **more):
        return self.judged(test, limit, **more) == 0

    def judged(self, test, limit, **more):
        env = environment(BUILD="build", VRAMCAST="build/vramcast", JOBS="1", SHARED="1", **more)
        with subprocess.Popen(["timeout", "-k", "5", str(limit), "scripts/run-tests.sh", test], cwd=self.at, env=env,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            return process.wait()

    def ready(self, test):
        """Builds what a test needs."""
        plays = {"ladders": ["ladders"], "golden": ["golden-replay"], "oracle-sglang": ["oracle-sglang-play", "oracle-sglang-serve"]}
        folder = test.split("/")[1]
        needs = [test] if test.startswith("build") else \
            ["build/tests/" + n for n in plays.get(folder, [folder + "-play"] if folder.startswith("oracle-") else [])]
        return self.build("all", *needs)

    def sanitized(self, test):
        return self.build("SAN=address,undefined", "WARN=-w", "UNTESTED=", test, CFLAGS="-g1")


def all_tests():
    said = subprocess.run(["make", "-s", "-pn", "DEPS=skip", "check-all"], capture_output=True, text=True, check=False,
                          env=environment()).stdout
    names = " ".join(re.findall(r"^(?:UNIT|CLI|TESTS) :?= (.*)$", said, re.M)).split()
    return [n for n in dict.fromkeys(names) if SAN not in n and not n.endswith("/browser.sh")]


def lines_reached(tree, counts, files):
    """{file: {line: times}} of what one test left under COUNTS."""
    reached = {}
    for gcda in Path(counts).rglob("*.gcda"):
        note = Path("/") / gcda.relative_to(counts).with_suffix(".gcno")
        if not note.exists():
            continue
        gcda.with_suffix(".gcno").symlink_to(note)
        said = subprocess.run(["gcov", "-j", "-t", str(gcda)], capture_output=True, cwd=tree.at, check=False).stdout
        for part in said.decode(errors="replace").splitlines():
            for f in json.loads(part)["files"] if part.startswith("{") else []:
                if f["file"] in files:
                    lines = reached.setdefault(f["file"], {})
                    for x in f["lines"]:
                        lines[x["line_number"]] = lines.get(x["line_number"], 0) + x["count"]
    return reached


def survey(work, files):
    """[(seconds, test, lines reached)] of the tests that pass, the quickest first."""
    wrapper = work / "cc"
    wrapper.write_text(WRAPPER.format(cc=CC, files=" ".join(files)))
    wrapper.chmod(0o755)
    tree = Tree(work / "count", str(wrapper))
    if not tree.build(*EVERYTHING):
        sys.exit("the tree does not build")

    def one(job):
        number, test = job
        counts = work / f"counts{number}"
        start = time.monotonic()
        good = tree.passes(test, 300, GCOV_PREFIX=str(counts))
        took = time.monotonic() - start
        reached = lines_reached(tree, counts, files)
        shutil.rmtree(counts, ignore_errors=True)
        if not good:
            print("left out, for it fails on the tree as it is:", test, flush=True)
        return took, test, reached, good
    with ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(one, enumerate(all_tests())))
    return sorted(((t, n, r) for t, n, r, good in found if good), key=lambda f: f[0])


def order(tests, m, text):
    """The tests that reach the line of a mistake; the file, when no test does; all, when nothing is known of the file."""
    line = next((i for i, s in enumerate(text, 1) if m["old"] in s), 0)
    known = [n for _, _, r in tests for n in r.get(m["file"], {}) if n <= line]
    at = max(known, default=0)
    for reaches in (lambda r: r.get(m["file"], {}).get(at), lambda r: any(r.get(m["file"], {}).values()), lambda r: True):
        chosen = [t for t in tests if reaches(t[2])]
        if chosen:
            break
    return [t for t in chosen if not QUICK or t[0] < 2], bool(at) and any(r.get(m["file"], {}).get(at) for _, _, r in tests)


def judge(tree, tests, m):
    """(result, who)"""
    file = tree.at / m["file"]
    kept = file.read_bytes()
    text = kept.decode().splitlines(keepends=True)
    if sum(m["old"] in s for s in text) != 1:
        return "misplaced", ""
    chosen, reached = order(tests, m, text)
    try:
        file.write_text("".join(s.replace(m["old"], m["new"], 1) for s in text))
        if not tree.build("all"):
            return "noticed", "the compiler"
        for seconds, test, _ in chosen:
            if not tree.ready(test) or not tree.passes(test, 30 + int(10 * seconds)):
                return "noticed", test
        for _, test, _ in [] if QUICK else chosen:
            copy = test.replace("build/", SAN + "/", 1)
            if UNITS.match(test) and (not tree.sanitized(copy) or not tree.passes(copy, 300)):
                return "noticed", copy
    finally:
        file.write_bytes(kept)
    return "survived", f"{len(chosen)} tests" + ("" if reached else ", none reaches the line")


def main():
    rows = mistakes(sys.argv[1])
    work = Path(tempfile.mkdtemp())
    try:
        trees, lock = [Tree(work / str(j)) for j in range(JOBS)], threading.Lock()
        tests = survey(work, {m["file"] for m in rows})
        shutil.rmtree(work / "count")
        print(f"{len(tests)} tests pass", flush=True)
        todo = iter(rows)

        def worker(tree):
            tree.build("all")
            while True:
                with lock:
                    m = next(todo, None)
                if m is None:
                    return
                start = time.monotonic()
                m["result"], m["by"] = judge(tree, tests, m)
                print(f"{m['result']:9} {time.monotonic() - start:4.0f} s  {m['file']}: {m['name']}  [{m['by']}]", flush=True)
        with ThreadPoolExecutor(JOBS) as pool:
            list(pool.map(worker, trees))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    tried = [m for m in rows if m["result"] != "misplaced"]
    noticed = [m for m in tried if m["result"] == "noticed"]
    table = ["| room | mutations | noticed | survived |", "|---|---|---|---|"]
    for room in sorted({m["room"] for m in rows}):
        mine = [m for m in tried if m["room"] == room]
        alive = "; ".join(f"{Path(m['file']).name}: `{m['name']}`".replace("|", "\\|") for m in mine if m["result"] == "survived")
        table.append(f"| {room} | {len(mine)} | {sum(m['result'] == 'noticed' for m in mine)} | {alive} |")
    table += ["", f"{len(noticed)} of {len(tried)} mutations are noticed ({100 * len(noticed) / max(1, len(tried)):.0f} %)."]
    table += [f"not in its file exactly once: {m['file']}: {m['name']}" for m in rows if m["result"] == "misplaced"]
    print("\n".join(table))
    if os.environ.get("OUT"):
        Path(os.environ["OUT"]).write_text("\n".join(table) + "\n")
    sys.exit(not tried or len(noticed) < 0.95 * len(tried))


main()
