# SPDX-License-Identifier: Apache-2.0
"""trackers.py - answers as metrics and files of an experiment tracker: TensorBoard, Weights & Biases, MLflow, or what
Accelerate holds of them. None of them is needed; each is known by what it can do."""
from __future__ import annotations

import importlib
import json
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

from .answers import Dryrun, Fit, Sim
from .errors import UsageError
from .sizes import gib

Answer = Union[Sim, Dryrun, Fit]


def _metrics(answer: Answer) -> Dict[str, float]:
    if isinstance(answer, Fit):
        return {k: v for k, v in (("largest", answer.largest), ("certain", answer.certain), ("possible", answer.possible),
                                  ("recommended", answer.recommended)) if v is not None}
    if isinstance(answer, Dryrun):
        return {"peak_used": answer.peak_used, "capacity": answer.capacity, "refused": answer.refused,
                "fits": int(answer.fits)}
    out: Dict[str, float] = {}
    for i, run in enumerate(answer.runs):
        where = "" if len(answer.runs) == 1 else f"{run.gpu or i}/"
        low, high = run.interval or (run.peak_reserved, run.peak_reserved)
        out.update({where + "peak_reserved": run.peak_reserved, where + "peak_allocated": run.peak_allocated,
                    where + "peak_used": run.peak_used, where + "capacity": run.capacity, where + "low": low,
                    where + "high": high, where + "fits": int(run.fits)})
    return out


def _words(answer: Answer) -> str:
    return f"largest {answer.find} that fits: {answer.largest}" if isinstance(answer, Fit) else str(answer)


def _report(answer: Answer, folder: str) -> List[str]:
    """The document, and the picture where there is one, as files."""
    texts = {"answer.json": json.dumps(answer.json, indent=1)}
    if isinstance(answer, Sim) and answer.picture:
        texts["picture.svg"] = answer.picture
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    return [os.path.join(folder, name) for name in texts]


# ---- what each of them takes ----

def _to_wandb(run: Any, answer: Answer, name: str, step: int) -> None:
    run.summary.update({f"{name}/{k}": v for k, v in _metrics(answer).items()})
    artifact = importlib.import_module("wandb").Artifact(name, type="memory", description=_words(answer))
    with tempfile.TemporaryDirectory() as folder:
        for file in _report(answer, folder):
            artifact.add_file(file)
        run.log_artifact(artifact)


def _to_mlflow(mlflow: Any, answer: Answer, name: str, step: int) -> None:
    mlflow.log_metrics({f"{name}/{k}": float(v) for k, v in _metrics(answer).items()}, step=step)
    mlflow.set_tag(f"{name}.verdict", _words(answer))
    with tempfile.TemporaryDirectory() as folder:
        _report(answer, folder)
        mlflow.log_artifacts(folder, name)


def _to_tensorboard(writer: Any, answer: Answer, name: str, step: int) -> None:
    for key, value in _metrics(answer).items():
        writer.add_scalar(f"{name}/{key}", value, step)
    if hasattr(writer, "add_text"):
        rows = "".join(f"| {k} | {v if k.endswith('fits') else gib(int(v))} |\n" for k, v in _metrics(answer).items())
        writer.add_text(name, f"{_words(answer)}\n\n| what | how much |\n|---|---|\n{rows}", step)
    writer.flush()


_KNOWN: Tuple[Tuple[Tuple[str, ...], Callable[[Any, Answer, str, int], None]], ...] = (
    (("log_artifact", "summary"), _to_wandb),
    (("log_metrics", "log_artifacts", "set_tag"), _to_mlflow),
    (("add_scalar", "flush"), _to_tensorboard),
)


def _each(to: Any) -> Iterator[Any]:
    if isinstance(to, (list, tuple)):
        for one in to:
            yield from _each(one)
    elif hasattr(to, "trackers"):  # an Accelerator
        yield from _each(list(to.trackers))
    elif hasattr(to, "store_init_configuration"):  # one of its trackers; MLflow's is the module itself
        yield importlib.import_module("mlflow") if to.name == "mlflow" else to.tracker
    else:
        yield to


def log(answer: Answer, to: Any, name: str = "vramcast", step: int = 0) -> None:
    """Hands an answer to an experiment tracker: its figures as metrics, the document and the picture as files. `to` is a
    SummaryWriter (TensorBoard), a run (Weights & Biases), the module mlflow, an Accelerator, or a list of them.

    >>> class Writer:
    ...     def add_scalar(self, name, value, step): print(name, value)
    ...     def flush(self): pass
    >>> vramcast.log(vramcast.dryrun("python train.py --batch 12", gpu="t4"), to=Writer())
    vramcast/peak_used 939524096
    vramcast/capacity 15642329088
    vramcast/refused 0
    vramcast/fits 1
    """
    for tracker in _each(to):
        for needs, hand in _KNOWN:
            if all(hasattr(tracker, n) for n in needs):
                hand(tracker, answer, name, step)
                break
        else:
            raise UsageError(f"log() does not know the tracker {type(tracker).__name__}; give it a SummaryWriter, a run of "
                             f"Weights & Biases, the module mlflow or an Accelerator")
