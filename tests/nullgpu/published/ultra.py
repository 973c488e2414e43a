# SPDX-License-Identifier: Apache-2.0
"""ultra.py NET SIZE CLASSES IMAGES OBJECTS [BATCH]: Ultralytics trains a net that nobody taught on a stand-in of a data set, so
many images with so many objects each. Prints its table of batch sizes (AutoBatch), or what was reserved after two epochs."""
import logging
import os
import shutil
import sys
from pathlib import Path

os.environ.update(HOME=os.getcwd(), YOLO_AUTOINSTALL="false", TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
import cv2  # noqa: E402
import matplotlib  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402

os.makedirs(".config/Ultralytics", exist_ok=True)  # the font of its pictures, which it would fetch
shutil.copy(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"), ".config/Ultralytics/Arial.ttf")
from ultralytics import YOLO  # noqa: E402

try:
    from ultralytics.utils import LOGGER
except ImportError:
    from ultralytics.yolo.utils import LOGGER

net, size, classes, images, objects = sys.argv[1], *map(int, sys.argv[2:6])
batch = int(sys.argv[6]) if sys.argv[6:] else -1
for part in ("images", "labels"):
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
random = numpy.random.default_rng(0)
for i in range(images):
    cv2.imwrite(f"images/{i}.jpg", random.integers(0, 255, (720, 1280, 3), numpy.uint8))
    boxes = numpy.clip(random.random((objects, 1, 2)) + numpy.array([[0, 0], [0, 0.1], [0.1, 0.1], [0.1, 0]]) - 0.05, 0, 1)
    lines = [f"{j % classes} {' '.join(map(str, box.ravel()))}\n" for j, box in enumerate(boxes)]
    Path(f"labels/{i}.txt").write_text("".join(lines))
Path("data.yaml").write_text(f"path: {os.getcwd()}\ntrain: images\nval: images\nnames: {[str(i) for i in range(classes)]}\n")
small = {"yolov8": "yolov8n", "yolo11": "yolo11n", "yolo26": "yolo26n"}[net[:6]]  # what it tries mixed precision with
torch.save({"model": YOLO(small + ".yaml").model, "train_args": {}}, small + ".pt")


class Table(logging.Handler):
    def emit(self, record):
        words = record.getMessage().split()
        if words[-1:] == ["list"]:
            print("published batch" + words[5].strip("(,"), round(float(words[2]) * 1e9), flush=True)
        if "Using batch-size" in record.getMessage():
            raise SystemExit


def epoch(trainer):
    print("published epoch%d" % (trainer.epoch + 1), torch.cuda.memory_reserved(), flush=True)


LOGGER.addHandler(Table())
model = YOLO(net + ".yaml")
model.add_callback("on_train_epoch_end", epoch)
model.train(data="data.yaml", epochs=2, batch=batch, imgsz=size, device=0, workers=0, close_mosaic=10)
