# python/build.mk - the package for Python: a wheel and a source distribution.
PYTHON ?= python3

# What the wheel carries. python/backend.py asks for it in a build folder of its own. The folders
# behind this one add to the list, so it is known only when a recipe runs.
NATIVE = $(BUILD)/vramcast $(INSTALL_LIBS)
native:
	$(Q)$(MAKE) --no-print-directory $(NATIVE)
	$(Q)echo '$(NATIVE)' > $(BUILD)/native.txt

wheel: ## the wheel and the source distribution for pip, into dist/ (DIST=DIR, VRAMCAST_CC=compiler)
	$(Q)MAKEFLAGS= CC='$(CC)' $(PYTHON) python/backend.py $(DIST)

.PHONY: native wheel

TESTS += tests/packaging/release.sh tests/python/package.sh tests/python/changes.sh tests/python/examples.sh tests/python/schema.sh tests/python/mcp.sh tests/python/ci.sh
check-wheel: all ## the wheel in clean environments of every Python here, and PyPI's judges (network once)
	$(Q)V=1 $(RUN_TESTS) tests/python/check_wheel.sh
.PHONY: check-wheel
check-mcp: all ## vramcast mcp by the official SDK's client, and schemas by jsonschema (network once)
	$(Q)V=1 $(RUN_TESTS) tests/python/check_mcp.sh
.PHONY: check-mcp
check-ci: all ## CI, the pytest plugin and the trainers with a real PyTorch (TORCH_PYTHON=python)
	$(Q)V=1 $(RUN_TESTS) tests/python/check_ci.sh
.PHONY: check-ci
check-peers: all ## what we write, read by Perfetto, _memory_viz.py, pprof, pandas and pyarrow (network once)
	$(Q)V=1 $(RUN_TESTS) tests/peers/check_peers.sh
.PHONY: check-peers
check-trackers: all ## vramcast.log() with TensorBoard, MLflow and Weights & Biases, offline (network once)
	$(Q)V=1 $(RUN_TESTS) tests/python/check_trackers.sh
.PHONY: check-trackers
deb: ## a package for Debian and Ubuntu, into dist/ (DIST=DIR)
	$(Q)MAKEFLAGS= CC='$(CC)' BUILD=$(BUILD)-deb scripts/deb.sh $(DIST)
check-packaging: all ## make install, make deb and lintian, the recipe for conda
	$(Q)V=1 $(RUN_TESTS) tests/packaging/check.sh
release: ## wheel, source, deb, page, notes, SBOM and sums, into dist/ (DIST=DIR): the same bytes from the same commit
	$(Q)DIST='$(DIST)' scripts/release.sh
check-action: ## the Action at @v1 in a clean root without a network (root; a build)
	$(Q)V=1 $(RUN_TESTS) tests/python/check_action.sh
check-release: ## all of a release twice, in two folders: the same bytes (six builds)
	$(Q)V=1 $(RUN_TESTS) tests/packaging/check_release.sh
.PHONY: deb release check-packaging check-release check-action
