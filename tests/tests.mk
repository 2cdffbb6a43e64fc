# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# How the tests are built and run; what they are is in tests/README.md.
#
#   check          everything, as CI runs it
#   check-unit, check-system, check-pass, check-fuzz, check-lint
#                  one part of it; RUN="--match WORD" picks tests by name
#   check-boards   those system tests that boot RISC-V boards, alone (MPERF_BOARDS=0 leaves them out
#                  of check); check-boards-arm the Arm ones, which are not in check
#   check-programs whole programs from Debian's source packages, built by mperf-cc, and other machines
#   check-pmu-events  all that Linux has of events and metrics, through our parser
#   fuzz, faults   hostile files and faults for as long as one has; not in check, but for a moment
#   check-debian13 set-up, build, unit tests and package on Debian 13, which is fetched
#
# The same sources are built twice: plain, and by clang with address and undefined-behaviour sanitizers
# (build/asan), where the objects that tests run are also those that libFuzzer tries.

# Each file of tests has a program of its name in $(BUILD)/tests/unit. The files of a folder are linked once, to a program
# that has all these names and runs the tests of the one by which it is called: linking is what takes long. A file that
# includes one of ours, to reach what is static in it, is linked by itself.
UNIT_TESTS := $(shell find tests/unit -name 'test_*.c')
UNIT_ALONE := $(shell grep -lE '^\#include "(.*\.c|tests/unit/.*_rig\.inc)"' $(UNIT_TESTS))
UNIT_FOLDERS := $(sort $(dir $(filter-out $(UNIT_ALONE),$(UNIT_TESTS))))
UNIT_BIN = $(patsubst %.c,$(BUILD)/tests/unit/%,$(notdir $(UNIT_TESTS)))
UNIT_SUPPORT = $(BUILD)/libtest.a
FUZZ_BIN = $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
# The runtime starts nothing in a test that refers to none of it.
ALL_LIBS = $(BUILD)/libompt.a $(BUILD)/libmperf-runtime.a $(BUILD)/libdaemon.a $(LIBS_ROOMS) $(BUILD)/libcode.a $(BUILD)/libnamer.a $(BUILD)/libroofs.a $(LIBS_CLIENT)
ALL_LDLIBS = $(shell $(PKG_CONFIG) --libs $(PKGS_DAEMON) $(PKGS_NAMER) $(PKGS_CLIENT)) $(DEMANGLE) -lm

.PHONY: test check check-unit check-system check-pass check-fuzz check-lint check-boards check-boards-arm check-debian13 check-programs check-pmu-events check-build unit-tests fuzzers packages-check bench-programs
.PRECIOUS: $(BUILD)/%.o

# What tests share. An archive, so that a program has what it uses, and is linked fast.
$(UNIT_SUPPORT): $(patsubst %.c,$(BUILD)/%.o,$(shell find tests/unit -name '*.c' ! -name 'test_*.c'))

unit-tests: $(UNIT_BIN)
# One of them: make test T=window, or T=window CASE=the_name_of_a_case
test:
	@[ -n "$(T)" ] || { echo "say which: make test T=window [CASE=name]; there are:"; \
		ls $(UNIT_TESTS) | sed 's|.*/test_||; s|\.c$$||' | sort | column -c 100; exit 2; } >&2
	$(QUIET)$(MAKE) $(BUILD)/tests/unit/test_$(T:test_%=%) $(if $(shell grep -rls --include=test_$(T:test_%=%).c \
		namer_rig tests/unit),$(BUILD)/test-namer/mperf-namer $(BUILD)/mperf-namer)
	$(if $(CASE),CK_RUN_CASE=$(CASE) )$(BUILD)/tests/unit/test_$(T:test_%=%)
# A test is linked with its folder and those before it, so that building one is quick; or with those before another
# folder, where what tests share drives the code from there: rings are decoded, stored rows are asked for.
LIBS_daemon/namer = $(BUILD)/libnamer.a $(LIBS_daemon/aggregate)
LIBS_daemon/code = $(BUILD)/libcode.a $(BUILD)/libnamer.a
LIBS_runtime = $(BUILD)/libompt.a $(BUILD)/libmperf-runtime.a
driven_from = $(strip \
	$(if $(filter daemon/kernel daemon/pmu daemon/pmu/% daemon/sampler,$(1)),daemon/decode, \
	$(if $(filter daemon/naming daemon/attribute,$(1)),daemon/aggregate, \
	$(if $(filter proto/base daemon/loops,$(1)),daemon/session, \
	$(if $(filter daemon/store% daemon/query%,$(1)),daemon/query/processes, \
	$(if $(filter daemon/child daemon/jobs daemon/control client/topdown,$(1)),daemon/control,$(1)))))))
unit_also = $(strip $(if $(filter daemon/naming,$(1)),$(BUILD)/libnamer.a) $(if $(filter client/roofs,$(1)),$(BUILD)/libroofs.a) \
	$(if $(filter daemon/control daemon/query/samples client/topdown,$(1)),$(LIBS_client/commands)))
unit_folder = $(patsubst tests/unit/%/,%,$(dir $(1)))
unit_libs = $(call unit_also,$(1)) $(LIBS_$(call driven_from,$(1))) $(BUILD)/libnames.a $(BUILD)/libplatform.a $(BUILD)/libproto.a
unit_objects = $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(UNIT_ALONE),$(wildcard $(1)test_*.c)))
define unit_program
$(BUILD)/$(1)tests: $(call unit_objects,$(1)) $(UNIT_SUPPORT) $(call unit_libs,$(call unit_folder,$(1)))
$(patsubst $(BUILD)/$(1)%.o,$(BUILD)/tests/unit/%,$(call unit_objects,$(1))): $(BUILD)/$(1)tests
	@ln -f $$< $$@
endef
$(foreach d,$(UNIT_FOLDERS),$(eval $(call unit_program,$(d))))
$(foreach t,$(UNIT_ALONE),$(eval $(BUILD)/tests/unit/$(basename $(notdir $(t))): \
	$(BUILD)/$(t:.c=.o) $(UNIT_SUPPORT) $(call unit_libs,$(call unit_folder,$(t)))))
$(patsubst %,$(BUILD)/%tests,$(UNIT_FOLDERS)) $(patsubst %.c,$(BUILD)/tests/unit/%,$(notdir $(UNIT_ALONE))):
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(ALL_LDLIBS) $(shell $(PKG_CONFIG) --libs check)
# Built often, and run for moments: not optimised.
$(patsubst %.c,$(BUILD)/%.o,$(UNIT_TESTS)): ALL_CFLAGS += -O0

fuzzers: $(FUZZ_BIN) $(BUILD)/tests/fuzz/whole_namer $(BUILD)/mperf-namer
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/mutate.o $(UNIT_SUPPORT) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(ALL_LDLIBS) $(shell $(PKG_CONFIG) --libs check)
# It sees how the workers end.
$(BUILD)/tests/fuzz/whole_namer: $(BUILD)/tests/fuzz/whole_namer.o $(BUILD)/tests/fuzz/item.o $(BUILD)/tests/fuzz/mutate.o $(UNIT_SUPPORT) $(ALL_LIBS)
	@mkdir -p $(@D)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -Wl,--wrap=waitpid -o $@ $^ $(ALL_LDLIBS) $(shell $(PKG_CONFIG) --libs check)

# Tools of the benchmarks; how they are used is in tests/bench/README.md.
bench-programs: $(BUILD)/tests/bench/synthesize $(BUILD)/tests/bench/query $(BUILD)/tests/bench/growth $(BUILD)/tests/bench/naming \
	$(BUILD)/tests/bench/sideband
$(BUILD)/tests/bench/growth: $(BUILD)/tests/bench/growth.o $(UNIT_SUPPORT) $(ALL_LIBS)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS) $(shell $(PKG_CONFIG) --libs check)
$(BUILD)/tests/bench/synthesize $(BUILD)/tests/bench/query $(BUILD)/tests/bench/naming $(BUILD)/tests/bench/sideband: %: %.o $(ALL_LIBS)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

# The replayed kernel steps through hours in microseconds; it is no code of ours that sanitizers are to watch.
$(BUILD)/tests/unit/replay.o $(BUILD)/tests/unit/replay_%.o: override SANITIZE :=
$(BUILD)/tests/unit/replay.o $(BUILD)/tests/unit/replay_%.o: override CFLAGS := -O2 -g

# A namer whose parser spins or crashes on files that ask for it, to show what happens then.
TEST_NAMER_OBJ = $(patsubst $(BUILD)/%.o,$(BUILD)/test-namer/%.o,$(NAMER_OBJ) $(BUILD)/daemon/namer/main.o)
$(BUILD)/test-namer/daemon/namer/%.o: daemon/namer/%.c | $(BUILD)/gen/all
	@mkdir -p $(@D)
	$(call short,CC)$(CC) $(ALL_CFLAGS) -DMPERF_TEST_WORKER -MMD -MP -c -o $@ $<
$(BUILD)/test-namer/mperf-namer: $(TEST_NAMER_OBJ) $(BUILD)/daemon/unwind/room.a $(BUILD)/libproto.a
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_NAMER)) $(DEMANGLE)

check-build: programs unit-tests $(BUILD)/test-namer/mperf-namer

# clang does not say by a macro that it sanitizes; what looks for gcc's finds it so. make asan CC=gcc builds with
# gcc, which makes no fuzzers.
ASAN_CC = clang
asan: ASAN_CC = $(if $(filter default,$(origin CC)),clang,$(CC))
COMMA = ,
SANITIZERS = -fsanitize=$(if $(findstring clang,$(ASAN_CC)),fuzzer-no-link$(COMMA))address,undefined -fno-sanitize-recover=undefined
ASAN_LINKER = $(and $(findstring clang,$(ASAN_CC)),$(shell command -v ld.lld-19),-fuse-ld=lld-19)# in a fifth of the time
ASAN_MAKE = $(MAKE) BUILD=$(BUILD)/asan CC=$(ASAN_CC) LDFLAGS="$(ASAN_LINKER)" CFLAGS="-O1 -g" CPPFLAGS=-D__SANITIZE_ADDRESS__ SANITIZE="$(SANITIZERS)"

PACKAGES_CHECK = check git clang clang-format-19 libclang-rt-dev cppcheck python3 python3-yaml binutils xz-utils fuse3 libfuse3-dev \
	linux-perf procps sqlite3 zsh util-linux groff-base shellcheck dwz pkg-config systemd systemd-container \
	debuginfod libdebuginfod1 mmdebstrap musl-tools tmux valgrind protobuf-compiler golang-github-google-pprof-dev? $(PACKAGES_ROOFS) $(PACKAGES_PASS) $(PACKAGES_PASS_CHECK)
# What kernels of other machines are built and run with.
PACKAGES_ROOFS = qemu-user $(foreach a,riscv64 arm64,libc6-dev-$(a)-cross?) gcc-riscv64-linux-gnu? gcc-aarch64-linux-gnu?
PACKAGES_PASS_CHECK = llvm-19-tools lld-19 libomp-19-dev qemu-user llvm-16-tools? lld-16?
PACKAGES_PROGRAMS = ccache autoconf automake libtool cmake git python3 qemu-user binutils \
	$(foreach a,riscv64 arm64 ppc64el,libc6-dev-$(a)-cross) gcc-riscv64-linux-gnu gcc-aarch64-linux-gnu \
	gcc-powerpc64le-linux-gnu golang-go golang-github-google-pprof-dev chromium
# What boards are built and booted with; kernel, libraries and QEMU are fetched into $(BUILD)/boards.
# QEMU is fetched for x86-64, so that elsewhere these tests are skipped.
PACKAGES_BOARDS = $(if $(filter x86_64,$(shell uname -m)),binutils clang lld-19 \
	gcc-riscv64-linux-gnu mmdebstrap device-tree-compiler e2fsprogs python3)
packages-check:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO) $(PACKAGES_DEB) $(PACKAGES_CHECK) $(PACKAGES_BOARDS)

check: packages-check
	$(QUIET)$(MAKE) WERROR=-Werror check-build
	+$(QUIET)$(ASAN_MAKE) WERROR=-Werror check-build fuzzers
	tests/run $(BUILD) $(RUN)
check-unit: check-build
	tests/run $(BUILD) --part unit $(RUN)
check-system: check-build
	tests/run $(BUILD) --part system $(RUN)
check-pass: pass
	@tests/packages $(PACKAGES_PASS) $(PACKAGES_PASS_CHECK)
	tests/run $(BUILD) --part pass $(RUN)
check-fuzz:
	+$(QUIET)$(ASAN_MAKE) fuzzers
	tests/run $(BUILD) --part fuzz $(RUN)
check-boards: BOARDS = (_counts|_service)?
check-boards-arm: BOARDS = _arm
check-boards-arm: PACKAGES_BOARDS += gcc-aarch64-linux-gnu
check-boards-arm: export MPERF_BOARDS = arm
check-boards check-boards-arm:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEB) $(PACKAGES_BOARDS)
	@mkdir -p $(BUILD)
	tests/run $(BUILD) --part system --kind plain --match "^system-plain/boards$(BOARDS)/" $(RUN)
check-programs: all
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO) $(PACKAGES_PASS) $(PACKAGES_PASS_CHECK) $(PACKAGES_PROGRAMS)
	tests/run $(BUILD) --part programs $(RUN)
check-pmu-events: $(BUILD)/mperf-platform-check
	@tests/packages python3 apt dpkg xz-utils
	tests/pmu_events/run $(BUILD) $(RUN)
check-debian13:
	@tests/packages python3 mmdebstrap util-linux
	@mkdir -p $(BUILD)
	MPERF_DEBIAN13=1 tests/run $(BUILD) --part system --kind plain --match "^system-plain/debian13/" $(RUN)
check-lint:
	tests/run $(BUILD) --part lint $(RUN)

# --- hostile files and faults, for as long as one has: tests/fuzz/README.md, tests/faults/README.md --

.PHONY: fuzz faults
# MINUTES in all; RUN="--match WORD" picks targets.
fuzz: packages-check
	$(QUIET)$(MAKE) $(BUILD)/mperf-namer $(BUILD)/mperfd $(BUILD)/mperfctl
	+$(QUIET)$(ASAN_MAKE) fuzzers
	tests/fuzz/run $(BUILD) --minutes $(if $(MINUTES),$(MINUTES),10) $(RUN)
# TIMES of each; RUN="--match WORD" picks faults.
faults: packages-check
	$(QUIET)$(MAKE) all unit-tests
	tests/faults/run $(BUILD) $(if $(TIMES),--times $(TIMES)) $(RUN)

# --- what it costs: minutes (BENCH=quick) to two hours, on a machine that does nothing else ---------

PACKAGES_BENCH = python3 linux-perf sysprof dbus bpfcc-tools sqlite3 gcc g++ util-linux
.PHONY: bench bench-instrument soak
bench:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO) $(PACKAGES_CHECK) $(PACKAGES_BENCH)
	$(QUIET)$(MAKE) all bench-programs
	tests/bench/run $(BUILD) $(if $(filter quick,$(BENCH)),--quick) $(RUN)
# What counting costs programs that count themselves, and how right it is.
PACKAGES_BENCH_INSTRUMENT = python3 valgrind qemu-user gcc-riscv64-linux-gnu gcc
bench-instrument:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_PASS) $(PACKAGES_PASS_CHECK) $(PACKAGES_PROGRAMS) \
		$(PACKAGES_BENCH_INSTRUMENT)
	$(QUIET)$(MAKE) all
	tests/bench/instrument/run $(BUILD) $(RUN)
# How large the house is; COMMIT=name for another one than the tree as it is.
.PHONY: figures
figures:
	@tests/figures $(COMMIT)
# How often a comparison is right, on made runs; RUN="1000 WORD" picks cases.
.PHONY: gate-check
gate-check: $(BUILD)/tests/gate/check
	$< $(RUN)
$(BUILD)/tests/gate/check: $(BUILD)/tests/gate/check.o $(BUILD)/tests/gate/made_runs.o $(ALL_LIBS)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)
# The same on recordings of real programs, which take 40 minutes the first time; RUN="--rounds 10" for less.
.PHONY: bench-gate
bench-gate:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO) python3 gcc
	$(QUIET)$(MAKE) all $(BUILD)/tests/gate/resample
	tests/gate/real $(BUILD) $(RUN)
$(BUILD)/tests/gate/resample: $(BUILD)/tests/gate/resample.o $(ALL_LIBS)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(ALL_LDLIBS)
# SECONDS=600 for ten minutes.
soak:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO) $(PACKAGES_CHECK) $(PACKAGES_BENCH)
	$(QUIET)$(MAKE) all bench-programs
	tests/bench/soak $(BUILD) --seconds $(if $(SECONDS),$(SECONDS),3600)
