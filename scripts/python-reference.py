# SPDX-License-Identifier: Apache-2.0
"""python-reference.py - docs/reference/python.md from the docstrings of python/vramcast: what the package exports, with
signatures and examples. It reads the source as text, so the page does not depend on what runs it."""
import ast
import inspect
import os
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python", "vramcast")
FILES = ("questions", "tables", "trackers", "answers", "recording", "errors")  # the order of the page
TITLES = {"questions": "Questions", "tables": "Columns", "trackers": "Experiment trackers", "answers": "Answers", "recording": "What a program tells the recorder",
          "errors": "Exceptions"}


SAME = ("read", "rows", "to_frame")  # what all answers have


def tree(name):
    with open(os.path.join(PACKAGE, name + ".py"), encoding="utf-8") as file:
        return ast.parse(file.read())


def exported():
    for node in tree("__init__").body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit("python-reference: the package says nothing of __all__")


def signature(node, owner=""):
    decorators = [d.id for d in node.decorator_list if isinstance(d, ast.Name)]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if "property" in decorators:
        return f"{owner}{node.name}{returns}"
    arguments = node.args
    if owner:
        arguments.args = arguments.args[1:]
    return f"{owner}{node.name}({ast.unparse(arguments)}){returns}".replace("'os.PathLike[str]'", "os.PathLike[str]").replace(
        "Union[str, os.PathLike[str]]", "Path").replace(
        "Union[None, str, os.PathLike[str]]", "Optional[Path]")


def overloads(node):
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in getattr(node, "decorator_list", ()))


def text(node, head, called=""):
    prose = inspect.cleandoc(ast.get_docstring(node) or "").partition(">>> ")[0]
    print("\n\n".join(["\n" + head, *([f"`{called}`"] if called else []), prose.strip()]))


def members(node):
    """The fields of a dataclass, then its functions."""
    fields = [f"`{n.target.id}`" for n in node.body if isinstance(n, ast.AnnAssign)]
    if fields:
        print("\nFields: " + ", ".join(fields) + ".")
    lines = []
    for n in node.body:
        if isinstance(n, ast.FunctionDef) and not n.name.startswith("_") and (node.name == "Table" or n.name not in SAME):
            prose = inspect.cleandoc(ast.get_docstring(n) or "").partition(">>> ")[0]
            lines.append(f"* `{signature(n, node.name + '.')}` {' '.join(prose.split())}")
    if lines:
        print("\n" + "\n".join(lines))


def main():
    names = exported()
    print("# The Python package\n\n<!-- scripts/make-reference.sh -->\n\n"
          "What `import vramcast` brings ([how to use it](../howto/python.md)). `help(vramcast.sim)` and so on have examples; a test runs\n"
          "them (`tests/python/examples.py`). `Path` is a str or an os.PathLike[str].")
    for file in FILES:
        nodes = [n for n in tree(file).body if getattr(n, "name", None) in names and not overloads(n)]
        print(f"\n## {TITLES[file]}\n" if file in ("recording", "errors") else f"\n## {TITLES[file]}")
        if file == "answers":
            print("\nEach answer is read from a JSON document by `read()`, keeps it as `json`, and is a table by `rows()` and `to_frame()`\n"
                  "(pandas or polars) where it has rows.")
        for n in nodes:
            names.discard(n.name)
            if file in ("recording", "errors"):
                prose = inspect.cleandoc(ast.get_docstring(n) or "").partition(">>> ")[0]
                made = [m for m in getattr(n, "body", ()) if getattr(m, "name", "") == "__init__"] if isinstance(n, ast.ClassDef) else []
                head = signature(made[0], n.name).replace("__init__", "").replace(" -> None", "") if made else \
                    n.name if isinstance(n, ast.ClassDef) else signature(n)
                print(f"* `{head}` {' '.join(prose.split())}")
                continue
            if isinstance(n, ast.ClassDef):
                made = [m for m in n.body if getattr(m, "name", "") == "__init__"]
                text(n, f"### {n.name}", signature(made[0], n.name).replace("__init__", "").replace(" -> None", "") if made else "")
                members(n)
            else:
                text(n, f"### {n.name}", signature(n))
    if names:
        raise SystemExit(f"python-reference: no page knows {', '.join(sorted(names))}")


if __name__ == "__main__":
    main()
    sys.exit(0)
