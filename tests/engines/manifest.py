# SPDX-License-Identifier: Apache-2.0
"""manifest.py FILE [TEXT]... - what the container of a job runs; fails where a text is not in the manifest,
without any where it is no indexed job."""
import sys

lines = open(sys.argv[1]).read().splitlines()
text = "\n".join(line for line in lines if not line.startswith("#"))
for needed in sys.argv[2:] or ("kind: Job", "completionMode: Indexed", "completions: 8", "name: JOB_COMPLETIONS", 'value: "8"',
               "restartPolicy: OnFailure", "command: [sh, -c]"):
    assert needed in text, needed
folded, indent = [], None
for line in text.splitlines():
    if line.strip() == "- >-":
        indent = len(line) - len(line.lstrip())
    elif indent is not None and len(line) - len(line.lstrip()) > indent:
        folded.append(line.strip())
    elif indent is not None:
        break
assert folded
print(" ".join(folded))
