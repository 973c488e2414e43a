# Rules of the test folders below tests/ (unit and cli tests are found by the top Makefile).
MODEL_TESTS := $(BUILD)/tests/golden-replay $(BUILD)/tests/conformance
$(BUILD)/tests/golden-replay: tests/golden/replay.c tests/golden/player.c tests/golden/script.c
$(BUILD)/tests/conformance: tests/models/conformance.c

$(MODEL_TESTS): $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/golden -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)

$(BUILD)/tests/bench-torch $(BUILD)/tests/bench-models: $(BUILD)/tests/bench-%: tests/bench/bench_%.c \
		tests/bench/training.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/bench -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
BENCHES += $(BUILD)/tests/bench-torch $(BUILD)/tests/bench-models tests/bench/tune.sh tests/bench/sweep.sh tests/bench/advice.sh tests/bench/many.sh tests/bench/fit.sh

$(BUILD)/tests/test_session: LIBS += -Wl,--wrap=vc_anatomy_read

$(BUILD)/tests/bench-format: tests/bench/bench_format.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)
BENCHES += $(BUILD)/tests/bench-format

$(BUILD)/tests/bench-packing: tests/bench/bench_packing.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)
bench-packing: $(BUILD)/tests/bench-packing ## placements of MiniMalloc's problems (PROBLEMS="A.csv B.csv ...")
	$(Q)$< $(PROBLEMS)
.PHONY: bench-packing

bench-large: all $(BUILD)/tests/bench-plot $(BUILD)/tests/bench-format ## sim and a picture of 10^8 events; a snapshot of 1 GB
	$(Q)VRAMCAST=$(BUILD)/vramcast BUILD=$(BUILD) $(BUILD)/tests/bench-plot large
	$(Q)VRAMCAST=$(BUILD)/vramcast BUILD=$(BUILD) tests/bench/import.sh
.PHONY: bench-large

check-all: $(BUILD)/tests/golden-replay
UNIT += $(BUILD)/tests/conformance
TESTS += tests/golden/golden.sh

GOLDEN ?= tests/golden/vectors
check-golden: $(BUILD)/tests/golden-replay ## replay recorded vectors: GOLDEN=DIR
	$(Q)$< $(GOLDEN)
.PHONY: check-golden

# Prediction of recorded ladders (families of recordings of one script at several sizes).
LADDERS ?= tests/ladders/recordings
$(BUILD)/tests/ladders: tests/ladders/ladders.c tests/ladders/rungs.c nullgpu/plans_path.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/golden -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
$(BUILD)/tests/calibration: tests/ladders/calibration.c tests/ladders/rungs.c nullgpu/plans_path.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
RECORDED_LADDERS = tests/ladders/recordings $(wildcard $(CALIBRATION_CACHE) $(CALIBRATION_CACHE)-full)
check-calibration: $(BUILD)/tests/calibration ## do intervals hold, from every pair and triple of rungs: LADDERS=DIRS, MOST=N a ladder (0: all)
	$(Q)$< -n $(or $(MOST),60) $(if $(filter file,$(origin LADDERS)),$(RECORDED_LADDERS),$(LADDERS))
check-rules: $(BUILD)/tests/calibration ## what each rule of predictions changes, by families: LADDERS=DIRS, MOST=N a ladder
	$(Q)tests/ladders/rules.py $< $(or $(MOST),4) $(if $(filter file,$(origin LADDERS)),$(RECORDED_LADDERS),$(LADDERS))
check-all: $(BUILD)/tests/ladders
SAID_TOO = $(foreach t,$(TESTS),$(if $(wildcard tests/answers/said/$(notdir $(patsubst %/,%,$(dir $t)))-$(basename $(notdir $t)).txt),$t))
TESTS += tests/ladders/ladders.sh tests/ladders/verdicts.sh tests/answers/answers.sh
# What the other tests run is run twice, to see what is the same each time (tests/support/tap.sh).
PINNED := test_visual test_recompute_words test_visual_golden test_drawn test_drawn_diff test_drawn_advice test_fuzz_corpus test_anatomies conformance
answers: all $(BUILD)/tests/ladders $(if $(T),,$(PINNED:%=$(BUILD)/tests/%)) ## write down the answers that tests hold on to, after a change that is meant (T=sim.sh: of these)
	$(Q)$(if $(T),,UPDATE=1 $(RUN_TESTS) tests/ladders/ladders.sh tests/transforms/recorded.sh tests/answers/answers.sh;) \
	for s in write again; do SAID=$$s $(RUN_TESTS) $(if $(T),$(filter $(T:%=\%/%),$(CLI) $(TESTS)),$(CLI) $(SAID_TOO)); done; \
	$(if $(T),,for t in $(PINNED); do VC_UPDATE_GOLDEN=1 $(BUILD)/tests/$$t > /dev/null 2>&1 || exit; done;) \
	git diff --stat tests/ladders tests/transforms tests/answers tests/golden
check-ladders: $(BUILD)/tests/ladders ## predict recorded ladders and say how far off: LADDERS=DIR
	$(Q)$< $(LADDERS) $(if $(wildcard $(LADDERS)/*.vct),.vct)
check-fit: all ## fit on recorded ladders, at capacities between the needs of their rungs: LADDERS=DIR
	$(Q)VRAMCAST=$(BUILD)/vramcast TMP=$${TMPDIR:-/tmp} LADDERS=$(LADDERS) tests/ladders/fit.sh
check-verdicts: all ## is a verdict on a predicted rung of a ladder ever wrong? LADDERS=DIR
	$(Q)VRAMCAST=$(BUILD)/vramcast TMP=$${TMPDIR:-/tmp} LADDERS=$(LADDERS) tests/ladders/verdicts.sh
.PHONY: check-rules check-ladders check-calibration check-fit check-verdicts answers

check-engines: all ## sweeps in parts under GNU parallel, Spark, Ray and Slurm, killed at random: F=slurm for one (network once)
	$(Q)V=1 $(RUN_TESTS) tests/engines/check.sh
.PHONY: check-engines

# The report in Chromium and Firefox; F=chromium for one. They are Debian's packages chromium and firefox-esr.
$(BUILD)/tests/make-extreme: tests/browser/make_extreme.c tests/support/extremes.h $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)
check-browser: all $(BUILD)/tests/make-extreme ## the report in real browsers, which are fetched outside the tree: F=firefox for one
	$(Q)V=1 $(RUN_TESTS) tests/browser/check.sh
.PHONY: check-browser

# Every recording that ships and each extreme, in every kind of picture, theme and width; `make check` takes them in turn.
check-pictures: $(addprefix $(BUILD)/tests/,test_drawn test_extremes) ## every recording x picture x theme x width: PART=0/4 for a quarter of the recordings
	$(Q)set -e; for t in $^; do echo "$$t"; LOOKS=all TMP=$${TMPDIR:-/tmp} $$t; done
.PHONY: check-pictures

# Every sentence about a run is held to its record, and numbers to a walk of the events (those of ../shared as well,
# where it is there); FINDINGS='DIR/*.vct' for others.
FINDINGS ?= ../shared/data/snapshots/* ../shared/data/kineto/* traces/*.vct tests/recordings/*.vct tests/recordings/h100/*.vct tests/snapshots/*.pickle.gz tests/ladders/recordings/*.vct
check-findings: all ## every sentence and number said of every recording that ships, and of 20 made for it, against its record
	$(Q)set -e; t=$$(mktemp -d); trap 'rm -rf "$$t"' EXIT; mkdir "$$t/made"; { python3 tests/findings/make.py "$$t/made"; \
	for f in $(wildcard $(FINDINGS)); do printf '%s\n' "$$f" "$$f -g t4" "$$f -g a100-40g-sxm" "$$f --capacity 700MiB --context 0"; done; } | \
	TMP=$$t VRAMCAST=$(BUILD)/vramcast python3 tests/findings/check.py --mutate
.PHONY: check-findings

# Deliberate mistakes, one at a time: does a test notice? QUICK=1, ROOM=x, MOST=N, JOBS=2 (tests/mutations/run.py)
# SEED=7 draws new ones, N=60 of them, in place of the list (tests/mutations/draw.py).
MUTATIONS ?= tests/mutations/list
check-mutations: ## are deliberate mistakes noticed by the tests? prints a table per room (SEED=7 N=60: new ones)
	$(Q)mkdir -p $(BUILD); $(if $(SEED),python3 tests/mutations/draw.py $(SEED) $(N) > $(BUILD)/mutations)
	$(Q)CC='$(CC)' OUT=$(BUILD)/mutations.md python3 tests/mutations/run.py $(if $(SEED),$(BUILD)/mutations,$(MUTATIONS))
check-constants: ## the same with every named number of a recognition rule halved and doubled
	$(Q)mkdir -p $(BUILD); tests/mutations/constants.sh > $(BUILD)/constants
	$(Q)QUICK=1 CC='$(CC)' OUT=$(BUILD)/constants.md python3 tests/mutations/run.py $(BUILD)/constants
.PHONY: check-mutations check-constants

# ---- the real allocator as judge (needs network once; caches outside the tree) ----
$(BUILD)/tests/oracle-fuzz: tests/oracle/fuzz.c tests/oracle/scripts.c tests/golden/player.c tests/golden/script.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/golden -Itests/oracle -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
$(BUILD)/tests/oracle-bench: tests/oracle/bench.c tests/bench/training.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/bench -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)

ORACLE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast-oracle
check-oracle: $(BUILD)/tests/oracle-fuzz ## random operations against the real allocator (fetches wheels)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle/check.sh
$(BUILD)/tests/oracle-whatif: $(addprefix tests/oracle/,whatif.c whatif_case.c whatif_judge.c whatif_play.c whatif_record.c whatif_truth.c \
		programs.c training_programs.c whatif.h programs.h) tests/golden/script.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests/golden -Itests/oracle -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
check-whatif-oracle: all $(BUILD)/tests/oracle-whatif ## what-ifs on random recordings against the real allocator (fetches wheels)
	$(Q)BUILD=$(BUILD) VRAMCAST=$(or $(VRAMCAST),$(BUILD)/vramcast) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle/check_whatif.sh
whatif-truth: all $(BUILD)/tests/oracle-whatif ## write tests/whatif anew: small recordings, and what the real allocator does with them
	$(Q)mkdir -p tests/whatif; rm -f tests/whatif/*.vct
	$(Q)-BUILD=$(BUILD) VRAMCAST=$(BUILD)/vramcast ORACLE_CACHE='$(ORACLE_CACHE)' WHATIF_KEPT=tests/whatif WHATIF_CASES=800 \
		WHATIF_SEED=500000 tests/oracle/check_whatif.sh | tail -n 1
TESTS += tests/whatif/truth.sh
.PHONY: check-whatif-oracle whatif-truth
bench-oracle: $(BUILD)/tests/oracle-bench ## speed against the real allocator
	$(Q)ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle/build.sh 2.9.1 2.15.0
	$(Q)for v in 2.9.1 2.15.0; do $(BUILD)/tests/oracle-bench '$(ORACLE_CACHE)'/build/$$v/oracle $$v || exit 1; done
$(BUILD)/tests/oracle-%-play: tests/oracle-%/play.c tests/support/play.c tests/support/dice.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
check-all: $(BUILD)/tests/oracle-bfc-play $(BUILD)/tests/oracle-rmm-play
TESTS += tests/oracle-bfc/bfc.sh tests/oracle-rmm/rmm.sh
check-oracle-bfc: $(BUILD)/tests/oracle-bfc-play ## the bfc model against TensorFlow's own allocator (fetches wheels)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-bfc/check.sh
check-oracle-rmm: $(BUILD)/tests/oracle-rmm-play ## the rmm_pool model against RMM's own source (fetches wheels)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-rmm/check.sh
$(BUILD)/tests/oracle-vllm-play: tests/oracle-vllm/play.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(BUILD)/libvramcast.a $(LIBS)
check-all: $(BUILD)/tests/oracle-vllm-play
TESTS += tests/oracle-vllm/vllm.sh
check-oracle-vllm: $(BUILD)/tests/oracle-vllm-play ## vramcast serve against vLLM's own scheduler (fetches wheels)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-vllm/check.sh
$(BUILD)/tests/oracle-sglang-serve: tests/oracle-sglang/serve.c tests/support/play.c tests/support/dice.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
check-all: $(BUILD)/tests/oracle-sglang-play $(BUILD)/tests/oracle-sglang-serve
TESTS += tests/oracle-sglang/sglang.sh
check-oracle-sglang: $(BUILD)/tests/oracle-sglang-play ## estimate --sglang against SGLang's own code (fetches wheels)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-sglang/check.sh
$(BUILD)/tests/oracle-xpu-play: tests/oracle-xpu/play.c tests/support/dice.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
check-all: $(BUILD)/tests/oracle-xpu-play
TESTS += tests/oracle-xpu/xpu.sh
check-oracle-xpu: $(BUILD)/tests/oracle-xpu-play ## the torch model for XPU against PyTorch's source (fetches it)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-xpu/check.sh
.PHONY: check-oracle bench-oracle check-oracle-bfc check-oracle-rmm check-oracle-vllm check-oracle-sglang check-oracle-xpu
$(BUILD)/tests/oracle-pools-play: tests/oracle-pools/play.c tests/support/dice.c $(BUILD)/libvramcast.a
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.c,$^) $(BUILD)/libvramcast.a $(LIBS)
check-all: $(BUILD)/tests/oracle-pools-play
TESTS += tests/oracle-pools/pools.sh
check-oracle-cupy: $(BUILD)/tests/oracle-pools-play ## the cupy model against CuPy's own pool (fetches a wheel)
	$(Q)BUILD=$(BUILD) ORACLE_CACHE='$(ORACLE_CACHE)' tests/oracle-pools/check.sh
.PHONY: check-oracle-cupy

# libFuzzer, when clang is here; what it finds goes to tests/fuzz and what sources read is replayed by make check.
FUZZ_TIME ?= 60
FUZZ_SAN := fuzzer-no-link,address,undefined
FUZZ_FLAGS = -max_total_time=$(FUZZ_TIME) -max_len=65536 -rss_limit_mb=1024 -timeout=10 -print_final_stats=1
FUZZ_BUILD := $(BUILD)-$(subst $(comma),-,$(FUZZ_SAN))
$(BUILD)/tests/fuzz-%: tests/fuzz/fuzz_%.c $(BUILD)/libvramcast.a $(BUILD)/commands/cmd_plot_lines.o
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -o $@ $< $(BUILD)/commands/cmd_plot_lines.o $(BUILD)/libvramcast.a $(LIBS)
fuzzers:
	$(Q)$(MAKE) --no-print-directory CC=clang SAN=$(FUZZ_SAN) DEPS=skip $(FUZZ_BUILD)/tests/fuzz-source $(FUZZ_BUILD)/tests/fuzz-texts
# One run for each reader: what sources read, with the name of the source in FUZZ_READER, and texts.
FUZZ_READERS ?= vct journal torch_snapshot kineto ops nsys texts
fuzz: $(FUZZ_READERS:%=fuzz-%) ## search for inputs that break the readers (clang): FUZZ_TIME=SECONDS for each
fuzz-%: fuzzers
	$(Q)mkdir -p $(BUILD)/fuzz/$*/found
	$(Q)FUZZ_READER=$* $(FUZZ_BUILD)/tests/fuzz-$(if $(filter texts,$*),texts,source) $(FUZZ_FLAGS) \
		$(addprefix -dict=,$(wildcard tests/fuzz/dict/$*)) -artifact_prefix=$(BUILD)/fuzz/$*/found/ \
		$(BUILD)/fuzz/$* tests/fuzz/$(if $(filter texts,$*),texts,corpus)
.PHONY: fuzz fuzzers

# Transforms against the change really made, by PyTorch on the null GPU; recordings are kept outside the tree.
TRANSFORMS_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast-transforms
TRANSFORMS_PYTHON ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast/torch-2.11.0/bin/python
check-transforms: all ## what transforms predict against the change really made (TRANSFORMS_PYTHON=python with torch)
	$(Q)VRAMCAST=$(BUILD)/vramcast PYTHON='$(TRANSFORMS_PYTHON)' CACHE='$(TRANSFORMS_CACHE)' \
		tests/transforms/record.sh | VRAMCAST=$(BUILD)/vramcast tests/transforms/check.sh
TESTS += tests/transforms/recorded.sh
TESTS += tests/extending/extending.sh
.PHONY: check-transforms

# Programs that no rule was chosen on, recorded at several sizes and with changes really made; kept outside the tree.
CALIBRATION_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast-calibration
PROGRAMS = VRAMCAST=$(BUILD)/vramcast PYTHON='$(TRANSFORMS_PYTHON)' CACHE='$(CALIBRATION_CACHE)'
calibration-ladders: all ## record the ladders of tests/programs (TRANSFORMS_PYTHON=python with torch)
	$(Q)$(PROGRAMS) nice -n 10 tests/programs/record.sh ladders
check-changes: all ## what transforms predict for tests/programs against the change really made
	$(Q)$(PROGRAMS) tests/programs/record.sh changes | VRAMCAST=$(BUILD)/vramcast tests/transforms/check.sh
check-rerun: all ## programs of tests/programs answer for other values, against dry runs of those (TORCH_PYTHON=python)
	$(Q)V=1 $(RUN_TESTS) tests/programs/check_rerun.sh
check-budget: all ## others' programs below 50, 65 and 80 % of what they need (TORCH_PYTHON=python with the packages of tests/budget/programs.py; ONLY=REGEX, SHARES, OUT)
	$(Q)TMP=$$(mktemp -d) && export TMP && VRAMCAST='$(abspath $(BUILD)/vramcast)' PYTHON='$(TORCH_PYTHON)' ONLY='$(ONLY)' OUT='$(OUT)' \
		nice -n 10 sh -c '"$$PYTHON" tests/budget/lower.py && "$$PYTHON" tests/budget/check.py'; r=$$?; rm -rf "$$TMP"; exit $$r
.PHONY: check-budget
$(BUILD)/tests/test_budget_code: $(BUILD)/commands/budget_code.o $(BUILD)/commands/hook_text.o
BISECT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/vramcast-bisect
check-bisect: all ## planted regressions are named by bisect, among commits and releases (TORCH_PYTHON=python; ONLY=NAME; fetches wheels)
	$(Q)V=1 ONLY='$(ONLY)' BISECT_CACHE='$(BISECT_CACHE)' $(RUN_TESTS) tests/bisect/check.sh
calibration-full: all ## record programs of real size (tests/programs/full.txt; their packages in PYTHONPATH); ONLY=REGEX some of them
	$(Q)VRAMCAST=$(BUILD)/vramcast PYTHON='$(TRANSFORMS_PYTHON)' CACHE='$(CALIBRATION_CACHE)-full' ONLY='$(ONLY)' \
		nice -n 10 tests/programs/record.sh full
# Programs that no rule was written beside: HOLDOUTS_LIST is strangers, newcomers, thirds, scripts (which says what SCRIPTS is), fourth or fifth.
# HOLDOUTS_PYTHON has the packages that they name.
HOLDOUTS_PYTHON ?= $(TRANSFORMS_PYTHON)
HOLDOUTS_LIST ?= strangers
HOLDOUTS = VRAMCAST='$(abspath $(BUILD)/vramcast)' PYTHON='$(HOLDOUTS_PYTHON)' ONLY='$(ONLY)'
HOLDOUTS_OF = '$(CALIBRATION_CACHE)-$(HOLDOUTS_LIST)' tests/programs/$(HOLDOUTS_LIST).txt
check-holdouts: all ## programs that no rule has seen: recorded, predicted from recordings, run again (HOLDOUTS_PYTHON=python with their packages; HOLDOUTS_LIST; ONLY=REGEX)
	$(Q)-$(HOLDOUTS) CARD=a100-40g-sxm CACHE=$(word 1,$(HOLDOUTS_OF)) LADDERS=$(word 2,$(HOLDOUTS_OF)) OTHER_SEED=2 \
		nice -n 10 tests/programs/record.sh full
	$(Q)$(HOLDOUTS) tests/holdouts/judge.py recordings $(HOLDOUTS_OF)
	$(Q)$(HOLDOUTS) tests/holdouts/judge.py rerun $(HOLDOUTS_OF)
.PHONY: check-holdouts
calibration-seeds: all $(BUILD)/tests/calibration ## programs whose sizes the data decide with ten seeds: how far truths differ, beside intervals
	$(Q)CACHE='$(CALIBRATION_CACHE)-seeds' VRAMCAST=$(BUILD)/vramcast PYTHON='$(TRANSFORMS_PYTHON)' \
		nice -n 10 tests/programs/record.sh seeds
	$(Q)-$(BUILD)/tests/calibration -n 0 -o $(BUILD)/seeds.tsv '$(CALIBRATION_CACHE)-seeds'
	$(Q)VRAMCAST=$(BUILD)/vramcast tests/programs/seeds.py '$(CALIBRATION_CACHE)-seeds' $(BUILD)/seeds.tsv
CARDS ?= rtx4090 t4 l40s h100-80g-sxm v100-32g-sxm b200-180g rtx3090
check-cards: all ## recordings of an A100 predict runs on other cards (tests/programs/cards.txt; CARDS="NAME...", TRANSFORMS_PYTHON=python with torch)
	$(Q)VRAMCAST='$(abspath $(BUILD)/vramcast)' PYTHON='$(TRANSFORMS_PYTHON)' CACHE='$(CALIBRATION_CACHE)-cards' CARDS='$(CARDS)' \
		nice -n 10 tests/programs/cards.sh
.PHONY: check-rerun check-bisect calibration-ladders calibration-full calibration-seeds check-changes check-cards
