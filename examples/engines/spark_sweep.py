# SPDX-License-Identifier: Apache-2.0
"""spark_sweep.py PARTS FILE TRACE... --vary KEY=VALUES - a sweep through Spark's pipe(): parts in, lines of JSON out.

A task that dies is made again by Spark (spark.task.maxFailures), and only what a whole task wrote counts. The traces
lie where every worker can read them."""
import os
import shlex
import subprocess
import sys

from pyspark import StorageLevel
from pyspark.sql import SparkSession


def main():
    parts, path, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    spark = SparkSession.builder.appName("vramcast sweep").getOrCreate()
    command = ["xargs", "-I{}", "vramcast", "sweep", "-q", "--json", "-j", "1", *words, "--shard", "{}/%d" % parts]
    numbers = spark.sparkContext.parallelize(range(1, parts + 1), parts)
    lines = numbers.pipe(shlex.join(command), env=dict(os.environ), checkCode=True)  # pipe() clears the environment
    lines.persist(StorageLevel.DISK_ONLY).count()  # all parts at once; the iterator below would ask for one after another
    reduce = subprocess.Popen(["vramcast", "reduce", "-", "-o", path], stdin=subprocess.PIPE, text=True)
    for line in lines.toLocalIterator():
        reduce.stdin.write(line + "\n")
    reduce.stdin.close()
    spark.stop()
    return reduce.wait()


if __name__ == "__main__":
    sys.exit(main())
