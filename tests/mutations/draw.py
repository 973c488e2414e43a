# SPDX-License-Identifier: Apache-2.0
"""draw.py SEED [N] - N (60) mistakes drawn by chance from all rooms, one operator each: a list for run.py.

Rooms are drawn as often as they have lines, each at least once; the same seed and tree give the same list.
Left out is what decides nothing by itself: constants, messages, checks, and the heads of loops; and bounds of what is the
same on both sides of them (the larger of two that are equal, their difference, the sign of zero), or of what was found to
differ just before."""
import random
import re
import subprocess
import sys

CHANGES = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
           (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "),
           (" += ", " -= "), (" -= ", " += "), ("return true;", "return false;"), ("return false;", "return true;"),
           ("if (!", "if ("), (" ? ", " && 0 ? "), ("return 0;", "return 1;")]
DECIDES = re.compile(r"(if|while|return|else if)\b|[a-z][\w.\[\]>-]* (=|\+=|-=) |[\w*]+ \w+ = ")
NOTHING = re.compile(r"/\*|\*|#|static |const static|for |case |assert|VC_TRY|.*(printf|vc_error|vc_say|\t|\")")


OPERAND = r"\*?[\w.\[\]]+(?:->[\w.\[\]]+)*"


def is_same(code, at, before, following):
    """a < b ? a : b, a > b ? a - b : b - a or 0, a < 0 ? -a : a, and if (a > b) b = a: where both are equal they do the same;
    after if (a != b), and in a != b ? (a < b, they are not equal."""
    a, b = re.search(rf"(?:^|[(,=?:] ?|&& |\|\| |return ){OPERAND}$", code[:at]), re.match(f" [<>]=? ({OPERAND})", code[at:])
    if not a or not b:
        return False
    differ = f"{re.search(f'{OPERAND}$', a.group()).group()} != {b.group(1)}"
    if code[:at].startswith("return ") and re.match(r"if \(.*\)$", before) and "||" not in before and \
            differ in re.split(r" && |if \(|\)$", before):
        return True
    if code[:at].endswith(f"{differ} ? ({a.group().lstrip('(')}"):
        return True
    a, b, rest = re.search(f"{OPERAND}$", a.group()).group(), b.group(1), code[at + b.end():]
    if rest == ")":
        return following in (f"{a} = {b};", f"{b} = {a};")
    x, y = re.escape(a), re.escape(b)
    same = f"{x} : {y}|{y} : {x}|{x} - {y} : (?:{y} - {x}|0)|0 : (?:{x} - {y}|{y} - {x})"
    same += f"|-{x} : {x}|{x} : -{x}" if b == "0" else ""
    return bool(re.match(rf" \? (?:{same})(?:$|[;),]| >)", rest))


def mutations(path):
    with open(path) as file:
        lines = [line.strip() for line in file]
    for before, line, following in zip([""] + lines, lines, lines[1:] + [""]):
        code = line.split("/*")[0]
        if NOTHING.match(line) or not DECIDES.match(line) or sum(line in other for other in lines) != 1:
            continue
        for old, new in CHANGES:
            for found in re.finditer(re.escape(old), code):
                if old.strip("<>= ") or not is_same(code, found.start(), before, following):
                    yield line, line[:found.start()] + new + line[found.end():]


def main():
    chance, most = random.Random(int(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    names = subprocess.run(["git", "ls-files", "common/*.c", "commands/*.c", "simulator/*.c", "visualize/*.c", "tracer/*.c",
                            "allocator/*.c", "nullgpu/*.c"], capture_output=True, text=True, check=True).stdout.split()
    rooms = {}
    for name in names:
        room = "/".join(name.split("/")[:2]) if name.startswith("simulator/") else name.split("/")[0]
        with open(name) as file:
            rooms.setdefault(room, []).extend([name] * len(file.readlines()))
    order, drawn = sorted(rooms), []
    while len(drawn) < most:
        room = order[len(drawn)] if len(drawn) < len(order) else chance.choices(order, [len(rooms[r]) for r in order])[0]
        name = chance.choice(rooms[room])
        found = list(mutations(name))
        row = (room, name, *chance.choice(found)) if found else None
        if row and row not in drawn:
            drawn.append(row)
            print("\t".join(row))


main()
