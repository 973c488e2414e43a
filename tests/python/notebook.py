# SPDX-License-Identifier: Apache-2.0
"""notebook.py EXECUTED.ipynb PAGE.html VERSION - did every cell run, by that Python, and are the pictures in the page?"""
import json
import sys

book, page, version = sys.argv[1:]
with open(book, encoding="utf-8") as file:
    document = json.load(file)
ran = document["metadata"]["language_info"]["version"]
assert ran.startswith(version + "."), f"run by {ran}"
cells = [c for c in document["cells"] if c["cell_type"] == "code"]
assert all(c["execution_count"] for c in cells), "a cell did not run"
outputs = [o for c in cells for o in c["outputs"]]
assert not [o for o in outputs if o["output_type"] == "error"], "a cell failed"
pages = ["".join(o.get("data", {}).get("text/html", "")) for o in outputs]
assert sum("<svg" in p for p in pages) == 2, "two answers have a picture"
assert sum("<table>" in p for p in pages) == 3, "three answers are tables"
with open(page, encoding="utf-8") as file:
    text = file.read()
assert text.count("</svg>") >= 2 and "a100-40g-sxm" in text, "the page shows no pictures"
