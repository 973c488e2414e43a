# SPDX-License-Identifier: Apache-2.0
"""nsys.py DUMP OUT.sqlite [PAGE] - what `vramcast dump` says of segments, as Nsight Systems would have exported it: its
tables with its columns (https://docs.nvidia.com/nsight-systems), written by SQLite itself. A pinned block, a variable of a
module, two refused calls and a call that failed otherwise are added; rows are not in the order of time."""
import re
import sqlite3
import sys

db = sqlite3.connect(sys.argv[2])
db.execute(f"PRAGMA page_size = {sys.argv[3] if len(sys.argv) > 3 else 4096}")
db.executescript("""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, -- ID reference value.
    value TEXT NOT NULL                                   -- String value.
);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (
    start                       INTEGER   NOT NULL,                    -- Event start timestamp (ns).
    globalPid                   INTEGER   NOT NULL,                    -- Serialized GlobalId, with (more, of it).
    deviceId                    INTEGER   NOT NULL,                    -- Device ID.
    contextId                   INTEGER   NOT NULL,                    -- Context ID.
    address                     INTEGER   NOT NULL,                    -- Virtual address of the allocation/deallocation.
    pc                          INTEGER   NOT NULL,                    -- Program counter of the allocation/deallocation.
    bytes                       INTEGER   NOT NULL,                    -- Number of bytes allocated/deallocated (B).
    memKind                     INTEGER   NOT NULL,                    -- REFERENCES ENUM_CUDA_MEM_KIND(id)
    memoryOperationType         INTEGER   NOT NULL,                    -- REFERENCES ENUM_CUDA_DEV_MEM_EVENT_OPER(id)
    name                        TEXT,                                  -- Variable name, if available.
    correlationId               INTEGER,                               -- REFERENCES CUPTI_ACTIVITY_KIND_RUNTIME(correlationId)
    streamId                    INTEGER,                               -- Stream ID.
    localMemoryPoolAddress      INTEGER,                               -- Base address of the local memory pool used
    localMemoryPoolReleaseThreshold INTEGER,                           -- Release threshold of the local memory pool used
    localMemoryPoolSize         INTEGER,                               -- Size of the local memory pool used
    localMemoryPoolUtilizedSize INTEGER,                               -- Utilized size of the local memory pool used
    importedMemoryPoolAddress   INTEGER,                               -- Base address of the imported memory pool used
    importedMemoryPoolProcessId INTEGER                                -- Process ID of the imported memory pool used
);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, uuid TEXT,
    isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,
    smCount INTEGER, cuDevice INTEGER);
INSERT INTO StringIds VALUES (3, 'cudaMalloc_v3020'), (5, 'cudaHostAlloc_v3020'), (9, 'cudaMallocHost_v3020');
INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'Tesla T4', '', '', 1, 4194304, 15642329088, 320064000000, 1590000000, 40, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900, 950, 0, 7, 1, 3, 2, NULL), (901, 951, 0, 7, 2, 5, 2, NULL),
    (902, 952, 0, 7, 3, 9, 2, NULL), (903, 953, 0, 7, 4, 3, 1, NULL), (990, 999, 0, 7, 5, 3, 2, NULL);
""")
rows, live = [], {}
for n, line in enumerate(open(sys.argv[1])):
    kind = re.search(r" (segment_alloc|segment_free) ", line)
    if not kind:
        continue
    address, size = int(re.search(r" addr=([0-9a-f]+)", line).group(1), 16), int(re.search(r" size=(\d+)", line).group(1))
    freed = kind.group(1) == "segment_free"
    rows.append((1000 + n, 281474976710656 * 3, 0, 1, address, 0, size, 2, int(freed), None, n, None, None, None, None, None, None, None))
rows.append((1, 281474976710656 * 3, 0, 1, 1 << 46, 0, 1 << 30, 1, 0, None, 1, *[None] * 7))      # pinned
rows.append((2, 281474976710656 * 3, 0, 1, 1 << 45, 0, 4096, 5, 0, "table", 2, *[None] * 7))      # of a module
rows.append((3, 281474976710656 * 3, 0, 1, 1 << 44, 0, 4096, 2, 1, None, 3, *[None] * 7))         # from before
db.executemany(f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({','.join('?' * 18)})", rows[::-1])
db.commit()
db.close()
