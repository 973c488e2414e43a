# SPDX-License-Identifier: Apache-2.0
"""check_trackers.py - vramcast.log() with the real trackers, offline, and what they kept, read back by their own readers."""
import glob
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import vramcast  # noqa: E402

TMP = os.environ["TMP"]
ANSWER = vramcast.sim("traces/decomfl.vct", gpu="t4", picture=True)
PEAK = ANSWER.peak_reserved


def test_tensorboard():
    """TensorBoard: its own reader finds the peak and the table"""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboardX import SummaryWriter
    folder = os.path.join(TMP, "board")
    with SummaryWriter(folder) as writer:
        vramcast.log(ANSWER, to=writer, step=3)
    events = EventAccumulator(folder)
    events.Reload()
    value = events.Scalars("vramcast/peak_reserved")
    assert [(v.step, v.value) for v in value] == [(3, PEAK)], value
    text = events.Tensors("vramcast/text_summary")[0].tensor_proto.string_val[0].decode()
    assert "t4: Fits: " in text and "| peak_reserved | 1.77 GiB |" in text, text


def test_mlflow():
    """MLflow: metrics, the verdict and the files of a run"""
    import mlflow
    mlflow.set_tracking_uri("file:" + os.path.join(TMP, "mlruns"))
    with mlflow.start_run() as run:
        vramcast.log(ANSWER, to=mlflow, name="memory")
    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.metrics["memory/peak_reserved"] == PEAK
    assert kept.data.tags["memory.verdict"].startswith("t4: Fits: ")
    files = sorted(f.path for f in mlflow.MlflowClient().list_artifacts(run.info.run_id, "memory"))
    assert files == ["memory/answer.json", "memory/picture.svg"], files


def test_wandb():
    """Weights & Biases, offline: the summary, and an artifact with the document and the picture"""
    import wandb
    run = wandb.init(mode="offline", dir=TMP, project="vramcast")
    vramcast.log(ANSWER, to=run)
    assert dict(run.summary)["vramcast/peak_reserved"] == PEAK
    run.finish()
    missing = {b"vramcast/peak_reserved", str(PEAK).encode(), b"answer.json", b"picture.svg", b"t4: Fits: "}
    for _ in range(60):    # another process of theirs writes what `wandb sync` would send
        with open(glob.glob(os.path.join(TMP, "wandb", "offline-run-*", "*.wandb"))[0], "rb") as file:
            kept = file.read()
        missing = {word for word in missing if word not in kept}
        if not missing:
            break
        time.sleep(0.5)
    assert not missing, missing


def test_unknown():
    """what is no tracker is one sentence"""
    tap.raises(vramcast.UsageError, "does not know the tracker int", vramcast.log, ANSWER, to=7)


def test_several():
    """a list of trackers, and a list of answers' kinds"""
    said = []

    class Writer:
        def add_scalar(self, name, value, step):
            said.append((name, value))

        def flush(self):
            pass
    vramcast.log(vramcast.fit(["tests/recordings/eval-4-8.vct@batch=4", "tests/recordings/eval-8-16.vct@batch=8"], gpu="t4"),
                 to=[Writer(), Writer()])
    assert len(said) == 8 and said[:4] == said[4:] and json.dumps(said), said


tap.run(globals())
