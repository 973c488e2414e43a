# SPDX-License-Identifier: Apache-2.0
"""package.py - the Python package, on the recordings of the tree and on the null GPU."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import card  # noqa: E402
import tap  # noqa: E402
import vramcast  # noqa: E402

TMP = os.environ["TMP"]
PAIR = ["tests/recordings/eval-4-8.vct@batch=4", "tests/recordings/eval-8-16.vct@batch=8"]
MESSAGE = ("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; "
           "9.50 GiB already allocated; 10.25 MiB free; 9.60 GiB reserved in total by PyTorch)")


def torch_that_is_not_there():
    """dryrun looks at what PyTorch's libraries want of CUDA; one that wants the driver alone does."""
    place = os.path.join(TMP, "stand-in")
    os.makedirs(os.path.join(place, "torch", "lib"), exist_ok=True)
    open(os.path.join(place, "torch", "__init__.py"), "w").close()
    beside = os.path.dirname(os.environ["VRAMCAST"])
    null = os.path.join(beside, "nullgpu")
    shutil.copy(os.path.join(null if os.path.isdir(null) else beside, "vcnull-libcufile.so.0"),
                os.path.join(place, "torch", "lib", "libtorch_cuda.so"))
    return {"PYTHONPATH": os.pathsep.join([place, os.environ.get("PYTHONPATH", "")])}


def test_sim():
    """sim: the verdict, the peak and the level of trust are those of the program"""
    answer = vramcast.sim("traces/decomfl.vct", gpu="t4")
    assert answer.fits and not answer.undecided and answer.verdict == "fits"
    assert answer.interval is None and answer.trust["level"] == "exact"
    assert answer.peak_reserved == answer.json["runs"][0]["peak_reserved"] > 1 << 30
    assert answer.require_fit() is answer


def test_several_runs():
    """sim: several cards are several runs, and set= extrapolates"""
    answer = vramcast.sim(PAIR, gpu=["t4", "rtx4090"], set={"batch": 32})
    assert [r.gpu for r in answer.runs] == ["t4", "rtx4090"]
    assert answer.json["trace"]["trust"]["level"] == "extrapolated"


def test_does_not_fit():
    """sim: what does not fit is an answer, with holders and advice; require_fit raises it"""
    answer = vramcast.sim("traces/lm-train-ctx128.vct", gpu="a100-40g-sxm")
    assert not answer.fits and answer.runs[0].oom.message.startswith("CUDA out of memory")
    assert any(a.verdict == "fits" and a.paste for a in answer.advice)
    tap.raises(vramcast.DoesNotFit, "a100-40g-sxm: Runs out of memory at event", answer.require_fit)


def test_undecided():
    """sim: an interval on both sides of the card is undecided"""
    answer = vramcast.sim("traces/lm-train-ctx128.vct", gpu="a100-40g-sxm",
                          transform="optimizer:to=adam8bit", no_advice=True)
    low, high = answer.interval
    assert answer.undecided and not answer.fits and low < answer.peak_reserved < high


def test_errors():
    """what cannot be done is an exception with the program's sentence"""
    tap.raises(vramcast.VramcastError, "^cannot open nope.vct: No such file", vramcast.sim, "nope.vct")
    error = tap.raises(vramcast.UsageError, "did you mean rtx4090", vramcast.sim,
                       "traces/decomfl.vct", gpu="rtx40900")
    assert isinstance(error, ValueError)
    tap.raises(vramcast.UsageError, "unknown|no option", vramcast.sim, "traces/decomfl.vct", nonsense=1)


def test_fit():
    """fit: the largest batch, and a table of what was tried"""
    answer = vramcast.fit(PAIR, gpu="t4")
    assert answer.find == "batch" and answer.recommended <= answer.largest
    assert answer.certain <= answer.largest <= answer.possible and answer.rows()


def test_explain():
    """explain: a text or an exception"""
    answer = vramcast.explain(RuntimeError(MESSAGE))
    assert answer.format == "F2-reserved" and answer.cause == "fragmentation" and answer.advice
    assert abs(answer.figures["capacity"] - 10.76 * 2**30) < 2**24


def test_diff():
    """diff: what grew, and the line of code"""
    answer = vramcast.diff("traces/lm-medium-ctx1024.vct", "traces/lm-train-ctx128.vct")
    assert answer.growth == answer.b_reserved - answer.a_reserved > 0
    assert answer.line == "optimizer.py:75 step" and answer.line in str(answer)
    assert vramcast.diff(PAIR[0], PAIR[0]).line is None


def test_pictures():
    """in a notebook an answer is a picture and a table"""
    page = vramcast.sim("traces/decomfl.vct", gpu="t4", picture=True)._repr_html_()
    assert page.startswith("<svg") or "<svg" in page[:300]
    assert "<td>t4</td>" in page and "<table>" in page


def test_frames():
    """to_frame says so where neither pandas nor polars is there, and gives rows where one is"""
    answer = vramcast.sim("traces/decomfl.vct", gpu="t4", no_advice=True)
    try:
        rows = len(answer.to_frame())
    except vramcast.VramcastError as error:
        assert "pandas or polars" in str(error)
    else:
        assert rows == 1


def test_marks_do_nothing():
    """marks, steps, regions and record do nothing in a program that nobody records"""
    assert not vramcast.is_recorded() and not vramcast.start() and not vramcast.dump("x")
    vramcast.step()
    with vramcast.region("forward"):
        vramcast.mark("here")


def test_snapshots_know_their_program():
    """vramcast.record writes down beside its snapshot what the program is"""
    out, script = os.path.join(TMP, "own.pickle"), os.path.join(TMP, "own.py")
    with open(script, "w") as f:
        f.write("import types, vramcast, vramcast.recording as r\n"
                "r._memory = lambda: types.SimpleNamespace(_record_memory_history=lambda **k: None,\n"
                "                                          _dump_snapshot=lambda path: None)\n"
                f"with vramcast.record({out!r}) as part: pass\nassert part.how == 'pytorch'\n")
    subprocess.run([sys.executable, script, "--batch", "4"], check=True,
                   env={**os.environ, "XDG_CACHE_HOME": os.path.join(TMP, "cache")})
    with open(out + ".program") as f:
        assert json.load(f)["arguments"][1:] == [script, "--batch", "4"]


def test_marks_are_recorded():
    """under vramcast record they are in the recording"""
    out = os.path.join(TMP, "marks.vct")
    script = ("import vramcast\nassert vramcast.is_recorded()\n"
              "with vramcast.region('forward'):\n    vramcast.step()\n"
              "@vramcast.record('part')\ndef part(): vramcast.mark('inside')\npart()\n")
    subprocess.run([os.environ["VRAMCAST"], "record", "-q", "--device", "cpu", "-o", out, "--", sys.executable, "-c",
                    script], check=True)
    text = subprocess.run([os.environ["VRAMCAST"], "dump", out], check=True, text=True,
                          capture_output=True).stdout
    order = [text.index(w) for w in ("forward", "step", "record part", "inside", "end of part")]
    assert order == sorted(order), text


def test_auto():
    """import vramcast.auto starts the script again under record, once"""
    script = os.path.join(TMP, "auto.py")
    with open(script, "w") as file:
        file.write("import vramcast.auto, vramcast, sys\nvramcast.mark('automatic')\n"
                   "print(vramcast.is_recorded(), sys.argv[1:])\n")
    out = os.path.join(TMP, "auto.vct")
    done = subprocess.run([sys.executable, script, "--lr", "1"], text=True, capture_output=True,
                          env={**os.environ, "VRAMCAST_OUTPUT": out}, timeout=60)
    assert done.stdout == "True ['--lr', '1']\n", done
    text = subprocess.run([os.environ["VRAMCAST"], "dump", out], text=True, capture_output=True).stdout
    assert text.count("automatic") == 1, text


def test_dryrun_of_a_function():
    """dryrun: a function of a module, in another process, on the chosen card"""
    env = torch_that_is_not_there()
    answer = vramcast.dryrun(card.take, gpu="t4", args=[1000], env=env)
    assert answer.fits and answer.gpu == "t4" and answer.exit_code == 0
    assert answer.peak_used - 1000 * 2**20 == answer.json["runs"][0]["context"]
    assert vramcast.dryrun(card.take, gpu="t4", args=[2000], env=env).peak_used - answer.peak_used == 1000 * 2**20


def test_dryrun_of_a_command():
    """dryrun: a command line that runs out"""
    answer = vramcast.dryrun([sys.executable, card.__file__, "20000"], gpu="t4",
                             env=torch_that_is_not_there())
    assert not answer.fits and answer.refused == 1 and answer.exit_code == 1
    assert "CUDA_ERROR_2" in answer.output
    tap.raises(vramcast.DoesNotFit, "on t4", answer.require_fit)


def test_dryrun_errors():
    """dryrun: a program that fails by itself, and functions that cannot be called elsewhere"""
    tap.raises(vramcast.VramcastError, "ended with code 1(.|\n)*nothing to do with memory",
               vramcast.dryrun, card.fail, gpu="t4",
               env=torch_that_is_not_there())
    tap.raises(vramcast.UsageError, "cannot call .*lambda", vramcast.dryrun, lambda: 1, gpu="t4")
    tap.raises(vramcast.UsageError, "did you mean", vramcast.dryrun, card.fail, gpu="t44")


def test_module():
    """python -m vramcast is the program, exit code and all"""
    done = subprocess.run([sys.executable, "-m", "vramcast", "sim", "-q", "traces/decomfl.vct",
                           "--capacity", "1GiB"], text=True, capture_output=True)
    assert done.returncode == 3 and "runs out of memory" in done.stdout


def test_every_fit_has_an_answer():
    """fit: each kind of document becomes an answer, and no card is dropped"""
    cards = vramcast.fit(PAIR, gpu=["t4", "l4"])
    assert [c.gpu for c in cards.cards] == ["t4", "l4"] and cards.cards[0] == vramcast.Fit.read({"find": "batch", **cards.json["cards"][0]})
    assert cards.cards[0].largest < cards.cards[1].largest
    for find in ("checkpoint", "anything"):
        found = vramcast.fit("tests/recordings/gpt.vct", find=find, gpu=["t4", "l4"], capacity="7GiB", most=60)
        assert {row["card"] for row in found.rows()} == {"Tesla T4", "NVIDIA L4"}, found.rows()


def test_what_a_notebook_shows():
    """__version__, a line for each answer, and sizes that are read"""
    assert vramcast.__version__[0].isdigit()
    answer = vramcast.sim("traces/lm-train-ctx128.vct", gpu="t4")
    assert len(repr(answer)) < 100 and "Runs out of memory" in repr(answer)
    assert "GiB</td>" in answer._repr_html_() and str(answer.runs[0].capacity) not in answer._repr_html_()


def test_metadata():
    """the wheel says where it comes from, and brings the notices of what is linked into it"""
    sys.path.insert(0, "python")
    import backend
    text = backend.metadata()
    for line in ("Project-URL: Homepage, https://", "Author: ", "Classifier: Typing :: Typed", "License-File: packaging/third-party.txt"):
        assert "\n" + line in text, line
    assert "redistributions in binary form" in open("packaging/third-party.txt").read().lower() and text.count("\n## ") + text.count("```") >= 4


tap.run(globals())
