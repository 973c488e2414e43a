# SPDX-License-Identifier: Apache-2.0
"""rec.py PIPELINE: TorchRec's benchmark_train_pipeline on two cards with its base_pipeline_light.yml, which its wheel lacks;
prints the peaks of its own table, whose GB are thousands of MiB."""
import re
import subprocess
import sys
from pathlib import Path

Path("light.yml").write_text("""
RunOptions:
  {world_size: 2, num_batches: 10, num_benchmarks: 1, num_profiles: 1, sharding_type: table_wise, profile_dir: ".", name: light}
ModelInputConfig: {feature_pooling_avg: 10}
EmbeddingTablesConfig:
  num_unweighted_features: 20
  num_weighted_features: 20
  embedding_feature_dim: 256
  additional_tables:
    - - {name: FP16_table, embedding_dim: 512, num_embeddings: 100_000, feature_names: ["additional_0_0"], data_type: FP16}
      - {name: large_table, embedding_dim: 2048, num_embeddings: 1_000_000, feature_names: ["additional_0_1"]}
    - []
    - - {name: skipped_table, embedding_dim: 128, num_embeddings: 100_000, feature_names: ["additional_2_1"]}
PlannerConfig: {additional_constraints: {large_table: {sharding_types: [column_wise]}}}
""")
command = [sys.executable, "-m", "torchrec.distributed.benchmark.benchmark_train_pipeline", "--yaml_config=light.yml",
           "--pipeline=" + sys.argv[1]]
got = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
for name in ("alloc", "reserved"):
    print("published", name, round(float(re.search(name + r" \(P90\): ([0-9.]+) GB", got)[1]) * 1000) * 2 ** 20)
