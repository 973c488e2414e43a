# SPDX-License-Identifier: Apache-2.0
"""ci.py - the steps of action.yml, run here one by one in a repository of two commits; and budgets.

With TORCH_PYTHON (a python with a CUDA build of PyTorch) the sample of examples/ci is really dry-run;
else its recordings stand in for it, as the `trace` of a budget. With CLEAN_ROOT (check_action.sh) the
step Install really installs, and what it installed is what runs."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

TREE, TMP = os.getcwd(), os.environ["TMP"]
REAL = os.environ.get("TORCH_PYTHON")
CLEAN = os.environ.get("CLEAN_ROOT")
REPO = os.path.join(TMP, "repo")
SENTENCE = ("train needs 52.00 MiB more than before (+11.4 %, 2 % are allowed); most of what is new comes from "
            "train.py:20 forward (tensors)")


def steps():
    """(name, names of env, script) of each step of action.yml. No reader of YAML is in Python; this one knows
    the form that the file has, and finds nothing where it has another."""
    with open(os.path.join(TREE, "action.yml")) as file:
        text = file.read().split("  steps:\n")[1]
    for block in text.split("    - name: ")[1:]:
        env = re.findall(r"^        (\w+): (\$\{\{ .* \}\})$", block, re.M)
        script = re.search(r"^      run: \|\n((?:        .*\n|\n)+)", block, re.M).group(1)
        yield block.split("\n")[0], env, re.sub(r"^ {8}", "", script, flags=re.M)


def git(*words):
    subprocess.run(["git", "-C", REPO, "-c", "user.name=test", "-c", "user.email=test@example.com", *words],
                   check=True, capture_output=True)


def commit(version):
    """The sample as it was, or with a layer more."""
    if REAL:
        with open(os.path.join(TREE, "examples/ci/train.py")) as file:
            script = file.read()
        changed = script.replace("layers=6", "layers=7")
        assert changed != script
        with open(os.path.join(REPO, "train.py"), "w") as file:
            file.write(changed if version == "head" else script)
    else:
        shutil.copy(os.path.join(TREE, f"tests/python/recordings/{version}.vct"), os.path.join(REPO, "run.vct"))
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", version)


def shim(name, script):
    path = os.path.join(TMP, "bin", name)
    with open(path, "w") as file:
        file.write("#!/bin/sh\n" + script + "\n")
    os.chmod(path, 0o755)


def prepare(budget=None):
    """A repository with two commits; the number of the first."""
    shutil.rmtree(REPO, ignore_errors=True)
    os.makedirs(REPO)
    os.makedirs(os.path.join(TMP, "bin"), exist_ok=True)
    subprocess.run(["git", "init", "-q", REPO], check=True)
    with open(os.path.join(TREE, "examples/ci/.vramcast.toml")) as file:
        text = file.read()
    if not REAL:
        text = re.sub(r'^command = .*$', 'trace = "run.vct"', text, flags=re.M)
    with open(os.path.join(REPO, ".vramcast.toml"), "w") as file:
        file.write(budget or text)
    with open(os.path.join(REPO, ".gitignore"), "w") as file:
        file.write(".vramcast/\n")
    python = REAL or sys.executable
    keep = "" if CLEAN else f'[ "$2" = pip ] && {{ echo "$@" > {TMP}/pip; exit 0; }}\n'
    shim("python", f'{keep}exec {python} "$@"')
    shim("sudo", "exit 0")
    shim("gh", f'echo "$@" >> {TMP}/gh; cat .vramcast/memory.md > {TMP}/comment')
    commit("base")
    return subprocess.run(["git", "-C", REPO, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def act(base):
    """Runs the steps as the runner does, and stops at the first that fails: (its name, its code, all output)."""
    values = {"inputs.base": base, "inputs.budgets": ".vramcast.toml", "inputs.package": "",
              "github.action_path": TREE, "github.event.repository.default_branch": "main",
              "inputs.token": "token", "github.event.pull_request.number": "7"}
    files = {n: os.path.join(TMP, n) for n in ("GITHUB_STEP_SUMMARY", "GITHUB_ENV")}
    for path in [*files.values(), os.path.join(TMP, "gh"), os.path.join(TMP, "comment")]:
        open(path, "w").close()
    output = ""
    for name, env, script in steps():
        given = {k: values[re.sub(r"\$\{\{ | \}\}", "", v)] for k, v in env}
        with open(files["GITHUB_ENV"]) as file:
            given.update(line.rstrip().split("=", 1) for line in file)
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=REPO, text=True,
                              env={**os.environ, **files, **given, "GITHUB_ACTIONS": "true", "PATH":
                                   os.path.join(TMP, "bin") + os.pathsep + os.environ["PATH"]},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output += done.stdout
        if done.returncode:
            return name, done.returncode, output
    return None, 0, output


def read(path):
    with open(path) as file:
        return file.read()


def need_toml():
    try:
        __import__("tomllib")
    except ImportError:
        tap.skip("Python before 3.11 reads no TOML")


def test_steps():
    """action.yml has its six steps"""
    names = [name for name, _, _ in steps()]
    assert names == ["Install", "Before", "After", "Compare", "Comment", "Verdict"], names


def test_growth_fails():
    """a change that adds 11 % of memory fails with one sentence that names the line"""
    need_toml()
    base = prepare()
    commit("head")
    name, code, output = act(base)
    assert (name, code) == ("Verdict", 4), output
    said = [line for line in output.splitlines() if line.startswith("::error")]
    assert said == ["::error title=GPU memory::" + SENTENCE], output


def test_comment():
    """the comment and the summary are what they were when somebody looked last"""
    need_toml()
    comment = read(os.path.join(TMP, "comment"))
    assert comment == read(os.path.join(TREE, "tests/python/recordings/comment.md")), comment
    assert read(os.path.join(TMP, "GITHUB_STEP_SUMMARY")) == comment
    assert read(os.path.join(TMP, "gh")).startswith("pr comment 7 ")


def test_junit_and_badge():
    """JUnit and the badge say the same"""
    need_toml()
    from xml.etree import ElementTree
    suite = ElementTree.parse(os.path.join(REPO, ".vramcast/memory.xml")).getroot()
    assert suite.get("failures") == "1" and suite.find("testcase/failure").get("message") == SENTENCE
    assert '"color": "red"' in read(os.path.join(REPO, ".vramcast/memory.json"))


def test_what_is_installed():
    """the source of the action is installed, or a file that is named; nothing comes from an index"""
    if CLEAN:
        import vramcast.program
        assert all(path.startswith(sys.prefix) for path in (vramcast.__file__, vramcast.program.path()))
        assert not os.path.exists(os.path.join(TREE, "build"))
    else:
        assert read(os.path.join(TMP, "pip")).split()[-2:] == ["--no-index", TREE]
    for path in ("action.yml", "examples/ci/gitlab-ci.yml"):
        for line in read(os.path.join(TREE, path)).splitlines():
            assert "pip install " not in line or "PACKAGE" in line or "torch" in line or "numpy" in line, line
            assert "PACKAGE" not in line or "pip install " not in line or "--no-index" in line, line


def test_a_new_run():
    """a run that the change adds has nothing to be compared with, and is no failure; nor is the first push of a branch"""
    need_toml()
    base = prepare()
    with open(os.path.join(REPO, ".vramcast.toml"), "a") as file:
        file.write('\n[[run]]\nname = "second"\ntrace = "second.vct"\ngpu = "t4"\n')
    shutil.copy(os.path.join(TREE, "tests/python/recordings/base.vct"), os.path.join(REPO, "second.vct"))
    commit("base")
    name, code, output = act(base)
    assert (name, code) == (None, 0) and "second is new" in output, output
    assert "| second | t4 | new |" in read(os.path.join(REPO, ".vramcast/memory.md"))
    prepare()
    name, code, output = act("0" * 40)
    assert (name, code) == (None, 0) and "all runs are new" in output, output


def test_no_change_passes():
    """a change that needs nothing passes"""
    need_toml()
    base = prepare()
    commit("base")
    name, code, output = act(base)
    assert (name, code) == (None, 0) and "train needs 586.00 MiB on t4, and fits" in output, output


def test_limits():
    """a limit that is exceeded is 4, and a card that is too small is 3"""
    need_toml()
    recordings = os.path.join(TREE, "tests/python/recordings")
    folder = os.path.join(TMP, "limits")
    os.makedirs(folder, exist_ok=True)
    for side in ("base", "head"):
        os.makedirs(os.path.join(folder, side), exist_ok=True)
        shutil.copy(os.path.join(recordings, side + ".vct"), os.path.join(folder, side, "x.vct"))

    def verdict(budget):
        with open(os.path.join(folder, "b.toml"), "w") as file:
            file.write('[[run]]\nname = "x"\ntrace = "x.vct"\n' + budget)
        return subprocess.run([sys.executable, "-m", "vramcast.ci", "compare", "base", "head", "--budgets", "b.toml"],
                              cwd=folder, text=True, capture_output=True)
    over = verdict('gpu = "t4"\nlimit = "600MiB"\ntolerance = "20%"\n')
    assert over.returncode == 4 and "x needs 638.00 MiB on t4, and its limit is 600.00 MiB; " in over.stdout, over
    assert verdict('gpu = "t4"\nlimit = "5%"\ntolerance = "20%"\n').returncode == 0
    assert verdict('gpu = "t4"\nlimit = "4%"\ntolerance = "20%"\n').returncode == 4
    for text, words in (('gpu = "t44"', "did you mean"), ("", "wants a gpu"), ('gpu = "t4"\nlimit = "many"', "wants a size"),
                        ('gpu = "t4"\ntorch = ["2.9"]', "goes with a command"),
                        ('gpu = "t4"\ncolour = 1', "no field 'colour'"), ('gpu = "t4"\ncommand = "x"', "one of the two"),
                        ('gpu = "t4"\ntolerance = 5', "wants a percentage"), ('gpu = ', "b.toml: ")):
        wrong = verdict(text + "\n")
        assert wrong.returncode in (1, 2) and words in wrong.stderr and wrong.stderr.count("\n") == 1, (text, wrong)


def test_releases():
    """a run of several releases of PyTorch is one of each, dry-run with that release"""
    need_toml()
    sys.path.insert(0, os.path.join(TREE, "python"))
    from vramcast import ci
    path = ci.Path(TMP) / "releases.toml"
    path.write_text('[[run]]\nname = "train"\ncommand = "python t.py"\ngpu = "t4"\ntorch = ["2.9", "/tmp/torch-nightly.whl"]\n')
    made, own = [], ci.dryrun
    ci.dryrun = lambda command, **given: made.append((given["torch"], os.path.basename(given["output"])))
    try:
        ci.measure(ci.Path("."), ci.Path(TMP) / "releases", path)
    finally:
        ci.dryrun = own
    assert made == [("2.9", "train torch 2.9.vct"), ("/tmp/torch-nightly.whl", "train torch torch-nightly.whl.vct")], made


def test_neighbours():
    """the comment says what a release of PyTorch needs more than the one before it"""
    need_toml()
    prepare()
    folder = os.path.join(TMP, "neighbours")
    os.makedirs(os.path.join(folder, "head"))
    for release, kept in (("2.9", "base"), ("2.10", "head"), ("2.11", "head")):
        shutil.copy(os.path.join(TREE, f"tests/python/recordings/{kept}.vct"), os.path.join(folder, f"head/train torch {release}.vct"))
    with open(os.path.join(folder, "b.toml"), "w") as file:
        file.write('[[run]]\nname = "train"\ncommand = "python t.py"\ngpu = "t4"\ntorch = ["2.9", "2.10", "2.11"]\n')
    done = subprocess.run([sys.executable, "-m", "vramcast.ci", "compare", "base", "head", "--budgets", "b.toml", "--markdown", "c.md"],
                          cwd=folder, text=True, capture_output=True)
    said = SENTENCE.replace("train needs", "train torch 2.10 needs").replace("before (+11.4 %, 2 % are allowed)", "train torch 2.9 (+11.4 %)")
    assert done.returncode == 0 and said in done.stdout, done
    assert f"\n- {said}\n" in read(os.path.join(folder, "c.md")) and "torch 2.11 needs 52" not in done.stdout, done


tap.run(globals())
