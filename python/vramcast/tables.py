# SPDX-License-Identifier: Apache-2.0
"""tables.py - what a run did, as columns: for pandas, polars, Arrow and Parquet."""
from __future__ import annotations

import csv
import importlib
import io
import os
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Union

from . import program
from .answers import Row, frame, html_table
from .errors import VramcastError
from .program import Paths

Column = List[Union[None, int, str]]


@dataclass(frozen=True)
class Table:
    """Columns by name. A column holds whole numbers (bytes, nanoseconds, events) or texts; None is a cell that is
    empty.

    >>> blocks = vramcast.table("run.vct", what="blocks")
    >>> len(blocks), blocks.columns["size"][:2]
    (7946, [155189248, 6297600])
    """
    columns: Dict[str, Column] = field(repr=False)

    @classmethod
    def read(cls, text: str) -> "Table":
        """From comma-separated values with a line of names.

        >>> vramcast.Table.read("a,b\\n1,x\\n,y\\n").columns
        {'a': [1, None], 'b': ['x', 'y']}
        """
        reader = csv.reader(io.StringIO(text))
        names = next(reader, [])
        cells: List[Sequence[str]] = list(zip(*reader)) or [() for _ in names]
        return cls({name: _column(column) for name, column in zip(names, cells)})

    def __len__(self) -> int:
        """The number of rows.

        >>> len(vramcast.table("run.vct", what="runs"))
        1
        """
        return max((len(c) for c in self.columns.values()), default=0)

    def rows(self) -> List[Row]:
        """A dictionary for each row.

        >>> vramcast.table("run.vct", what="runs", gpu="t4").rows()[0]["verdict"]
        'fits'
        """
        return [dict(zip(self.columns, row)) for row in zip(*self.columns.values())]

    def to_frame(self) -> Any:
        """A DataFrame of pandas, or of polars where pandas is not there.

        >>> int(vramcast.table("run.vct").to_frame()["reserved_max"].max())    # needs pandas
        1897922560
        """
        return frame(self.columns)

    def to_arrow(self) -> Any:
        """A table of Apache Arrow. Whole numbers are int64.

        >>> vramcast.table("run.vct").to_arrow().schema.field("reserved_max").type    # needs pyarrow
        DataType(int64)
        """
        arrow = _pyarrow("pyarrow")
        kinds = {name: arrow.string() if any(isinstance(v, str) for v in column) else arrow.int64()
                 for name, column in self.columns.items()}
        return arrow.table({name: arrow.array(column, kinds[name]) for name, column in self.columns.items()})

    def to_parquet(self, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
        """Writes a Parquet file; further arguments are those of pyarrow.parquet.write_table().

        >>> vramcast.table("run.vct", what="blocks").to_parquet("blocks.parquet")    # needs pyarrow
        """
        _pyarrow("pyarrow.parquet").write_table(self.to_arrow(), os.fspath(path), **options)

    def _repr_html_(self) -> str:
        return html_table(self.rows()[:20]) + (f"<p>{len(self)} rows</p>" if len(self) > 20 else "")


def _column(cells: Sequence[str]) -> Column:
    if all(not c or re.fullmatch(r"-?[0-9]+", c) for c in cells):
        return [int(c) if c else None for c in cells]
    return [c or None for c in cells]


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise VramcastError("Arrow and Parquet need pyarrow, and it is not installed") from None


def table(path: Paths, what: str = "curve", gpu: program.Names = None,
          set: Optional[program.Values] = None,  # noqa: A002 - the option's name
          transform: program.Names = None, **options: object) -> Table:
    """What a run does, as columns: `what` is "curve" (memory over time), "blocks" (each block, with its size, birth,
    death and call site), "unused" (what unused bytes are, over time) or "runs" (the totals). The run may be changed,
    as for sim().

    >>> curve = vramcast.table("run.vct")
    >>> max(curve.columns["reserved_max"]) == vramcast.sim("run.vct").peak_reserved
    True
    """
    words = program.options({"gpu": gpu, "transform": transform, **options}, set)
    return Table.read(program.run(["export", "-q", "--to", "csv:what=" + what, "-o", "-", *words, *program.paths(path)]))
