# SPDX-License-Identifier: Apache-2.0
"""schema.py - every --json document is what `vramcast schema` says, field by field: nothing of
another type, nothing missing, and nothing that the schema does not know."""
import glob
import json
import os
import re
import subprocess
import sys

try:
    import jsonschema  # checks the schemas themselves, where it is installed
except ImportError:
    jsonschema = None

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
import tap  # noqa: E402
from vramcast import answers  # noqa: E402

PROGRAM, TMP = os.environ["VRAMCAST"], os.environ["TMP"]
PAIR = ["tests/recordings/eval-4-8.vct@batch=4", "tests/recordings/eval-8-16.vct@batch=8"]
LM = "traces/lm-train-ctx128.vct"
LAYERS, GPT = "traces/lm-medium-ctx1024.vct", "tests/recordings/gpt.vct"
PRICES = os.path.join(TMP, "prices")
MESSAGE, LENGTHS = os.path.join(TMP, "message"), os.path.join(TMP, "lengths")
BERT = [f"tests/ladders/recordings/bert-cls_seq0{n}_torch2.9.1.vct@seq={n},batch=8" for n in (100, 256)]
QUESTIONS = {
    "sim": [["traces/decomfl.vct", "-g", "t4"], [LM, "-g", "a100-40g-sxm", "--fail-above", "10%"],
            [*PAIR, "--set", "batch=32", "-g", "t4"],
            ["traces/attention.vct", "--stats", "-m", "torch", "-m", "bfc", "--capacity", "1GiB"],
            [LM, "-g", "h200", "-x", "checkpoint", "--no-advice"],
            ["tests/recordings/leak-logits.vct", "--no-advice"],
            ["tests/recordings/oom.vct", "--strict", "--no-advice", "--torch", "2.1"],
            ["tests/fuzz/corpus/profile.json", "--no-advice"]],
    "sweep": [["traces/attention.vct", "--vary", "capacity=1G,4G", "--vary", "torch=2.9,2.15"]],
    "diff": [PAIR, ["traces/lm-medium-ctx1024.vct", LM], [PAIR[0], PAIR[0]]],
    "fit": [[*PAIR, "-g", "t4"], [*PAIR, "-g", "t4", "-g", "rtx4090", "--among", "8,16,32"],
            [*PAIR, "--capacity", "230MiB"], [*PAIR, "--capacity", "2GiB"],
            ["--find", "checkpoint", GPT, "-g", "t4", "--capacity", "7GiB"],
            ["--find", "checkpoint", LAYERS, "--capacity", "20GiB"],
            ["--find", "anything", GPT, "-g", "t4", "--capacity", "7GiB", "--most", "60"],
            ["--find", "anything", GPT, "-g", "t4", "-g", "rtx4090"]],
    "epoch": [[*BERT, "--lengths", LENGTHS, "--capacity", "3GiB"], [*BERT, "--lengths", LENGTHS, "-g", "t4", "-g", "l4"]],
    "explain": [[MESSAGE]],
    "tune": [["traces/decomfl.vct", "-g", "t4"], [LM, "-g", "a100-40g-sxm"]],
    "estimate": [["--params", "1e9", "--layers", "16", "--hidden", "2048"],
                 ["--params", "1e9", "--layers", "16", "--hidden", "2048", "-g", "t4"],
                 ["--params", "1e9", "--layers", "16", "--hidden", "2048", "-g", "all", "--prices", PRICES]],
    "info": [["traces/decomfl.vct"], [LM], ["tests/recordings/leak-maps.vct"],
             ["tests/recordings/devices.vct"], ["tests/fuzz/corpus/profile.json"]],
    "plan": [["traces/decomfl.vct", "-o", os.path.join(TMP, "a.vcp")]],
    "serve": [["examples/requests.jsonl", "--blocks", "2000"]],
    "ranks": [[*PAIR, LM], [*PAIR, "--capacity", "300MiB"], [LM, LM]],
    "gpus": [[]],
    "doctor": [[]],
    "history": [[]],
    "dryrun": [["-g", "t4", "--vary", "n=1,2", "--", "true", "{n}"]],
}
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict,
         "array": list, "null": type(None)}


def differences(value, schema, root, where=""):
    """What of JSON Schema the schemas use; what is not named is a difference, too."""
    if "$ref" in schema:
        yield from differences(value, root["$defs"][schema["$ref"].split("/")[-1]], root, where)
        return
    if "anyOf" in schema:
        tried = [list(differences(value, s, root, where)) for s in schema["anyOf"]]
        if all(tried):
            yield from min(tried, key=len)
        return
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(isinstance(value, TYPES[n]) and (n == "boolean") == isinstance(value, bool) for n in names):
        yield f"{where}: {value!r} is no {names[0]}"
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from differences(item, schema["items"], root, f"{where}[{i}]")
    elif isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name} is missing"
        for name, item in value.items():
            if name in known or others is not None:
                yield from differences(item, known.get(name, others), root, f"{where}.{name}")
            else:
                yield f"{where}.{name} is not in the schema"


def once(pairs):
    """An object, no name of which stands in it twice."""
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]
    return dict(pairs)


def schema(name):
    text = subprocess.run([PROGRAM, "schema", name], check=True, text=True, capture_output=True).stdout
    wanted = json.loads(text, object_pairs_hook=once)
    for one in [*wanted.get("anyOf", [wanted]), *wanted["$defs"].values()]:
        assert len(set(one["required"])) == len(one["required"]), f"{name}: required twice"
    if jsonschema:
        jsonschema.Draft202012Validator.check_schema(wanted)
    return wanted


def documents(command, words):
    done = subprocess.run([PROGRAM, command, "-q", "--json", *words], text=True, capture_output=True)
    assert done.returncode in ((0, 1) if command in ("doctor", "dryrun") else (0, 3, 4, 5, 6)), done.stderr
    lines = done.stdout.splitlines() if command == "sweep" else [done.stdout]
    return [json.loads(line, object_pairs_hook=once) for line in lines]


def read(command, document):
    """What the Python package makes of a document, looked at whole: each property, row, text and table of it."""
    kinds = {"sim": answers.Sim, "diff": answers.Diff, "explain": answers.Explanation,
             "fit": answers.Fit if "find" in document else answers.Changes}
    if command in kinds:
        look(kinds[command].read(document))


def look(answer):
    """Asks an answer, and the answers in it, all that they can be asked without an argument."""
    assert str(answer) and repr(answer), type(answer)
    for name in (n for n in dir(type(answer)) if n == "_repr_html_" or not n.startswith("_")):
        if name in ("read", "to_frame", "require_fit"):
            continue
        value = getattr(answer, name)
        value = value() if callable(value) else value
        for inner in value if isinstance(value, list) else [value]:
            if name != "cards" and type(inner).__module__ == answers.__name__:
                look(inner)
    for one in getattr(answer, "cards", [])[1:]:
        assert str(one) and one.rows() is not None


def check(command):
    wanted = schema(command)
    for words in QUESTIONS[command]:
        for document in documents(command, words):
            wrong = list(differences(document, wanted, wanted))
            assert not wrong, f"{command} {' '.join(words)}: " + "; ".join(wrong[:5])
            read(command, document)
            if jsonschema:
                jsonschema.validate(document, wanted)


def test_all_have_one():
    """every command with --json has a schema, and every schema is tried"""
    help_text = subprocess.run([PROGRAM, "help"], text=True, capture_output=True).stdout
    commands = re.findall(r"^  ([a-z]+) ", help_text, re.M)
    with_json = [c for c in commands if re.search(r"^      --json ", subprocess.run(
        [PROGRAM, "help", c], text=True, capture_output=True).stdout, re.M)]
    # bisect.sh asks bisect, which wants a program on an allocator
    assert sorted(with_json) == sorted([*QUESTIONS, "bisect"]), set(with_json) ^ set(QUESTIONS)
    done = subprocess.run([PROGRAM, "schema", "simm"], text=True, capture_output=True)
    assert done.returncode == 2 and "did you mean sim" in done.stderr


def test_a_difference_is_seen():
    """a field of another type, one that is missing and one too many are seen"""
    wanted, document = schema("gpus"), documents("gpus", [])[0]
    assert not list(differences(document, wanted, wanted))
    document["gpus"][0]["sms"] = "many"
    del document["gpus"][1]["total"]
    document["gpus"][2]["colour"] = 1
    assert len(list(differences(document, wanted, wanted))) == 3


def test_of_every_recording():
    """what is said of every small recording, in each of seven ways, is a document of its schema, and the Python package reads
    all of it (DOCUMENTS=300: so many of them)"""
    small = [p for p in sorted(glob.glob("tests/recordings/**/*.vct", recursive=True) + glob.glob("traces/*.vct"))
             if os.path.getsize(p) < 150000]
    ways = [("info", lambda p: [p]), ("sim", lambda p: [p, "-g", "t4", "--no-advice"]), ("diff", lambda p: [p, p, "--no-verify"]),
            ("ranks", lambda p: [p, p, "-g", "l4"]), ("tune", lambda p: [p, "-g", "t4"]),
            ("sim", lambda p: [p, "--capacity", "64MiB", "--stats"]), ("sweep", lambda p: [p, "--vary", "torch=2.4,2.9"])]
    asked = [(command, words(p)) for p in small for command, words in ways]
    many = int(os.environ.get("DOCUMENTS", "24"))
    known, told, refused = {c: schema(c) for c, _ in ways}, 0, []
    for i in range(min(many, len(asked))):
        command, words = asked[i * len(asked) // min(many, len(asked))]
        done = subprocess.run([PROGRAM, command, "-q", "--json", *words], text=True, capture_output=True)
        if done.returncode in (1, 2):  # a recording of another kind: one sentence, and no half of a document
            refused.append(done.stderr)
            assert not done.stdout and done.stderr.count("\n") == 1, (command, words, done.stderr)
            continue
        for line in done.stdout.splitlines() if command == "sweep" else [done.stdout]:
            document = json.loads(line, object_pairs_hook=once)
            wrong = list(differences(document, known[command], known[command]))
            assert not wrong, f"{command} {' '.join(words)}: " + "; ".join(wrong[:5])
            read(command, document)
            told += 1
    assert told > 2 * len(refused), (told, refused[:5])


def add(command):
    def test():
        check(command)
    test.__doc__ = f"{command}: what it writes is what its schema says"
    globals()["test_" + command] = test


with open(MESSAGE, "w") as stream:
    stream.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.46 GiB. GPU 0 has a total "
                 "capacity of 23.52 GiB of which 992.88 MiB is free. Process 4711 has 1.00 GiB memory in use. "
                 "Including non-PyTorch memory, this process has 22.55 GiB memory in use. Of the allocated memory "
                 "21.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n")
with open(PRICES, "w") as stream:
    stream.write("# dollars an hour, 2026-11-22\nname,price\nt4,0.35\na100-80g-sxm,1.9\n")
with open(LENGTHS, "w") as stream:
    stream.write("64 1000\n384 5\n")
if len(sys.argv) > 2:  # schema.py COMMAND FILE: a document that somebody else asked for
    with open(sys.argv[2]) as stream:
        wrong = list(differences(json.load(stream), schema(sys.argv[1]), schema(sys.argv[1])))
    sys.exit("; ".join(wrong[:5]) or 0)
for one in QUESTIONS:
    add(one)
tap.run(dict(globals()))
