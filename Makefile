# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# One Makefile for the whole house: every .c below a folder becomes an object, the folders become
# archives, and the programs are linked from them. Nothing is written outside $(BUILD).

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR      = $(PREFIX)/bin
SBINDIR     = $(PREFIX)/sbin
LIBEXECDIR  = $(PREFIX)/libexec/mperf
LIBDIR      = $(PREFIX)/lib/mperf
DATADIR     = $(PREFIX)/share/mperf
MANDIR      = $(PREFIX)/share/man
DOCDIR      = $(PREFIX)/share/doc/mperf
EXAMPLEDIR  = $(DOCDIR)/examples
UNITDIR     = $(PREFIX)/lib/systemd/system
GENERATORDIR = $(PREFIX)/lib/systemd/system-generators
SYSUSERSDIR = $(PREFIX)/lib/sysusers.d
TMPFILESDIR = $(PREFIX)/lib/tmpfiles.d
SYSCTLDIR   = $(PREFIX)/lib/sysctl.d
CONFDIR     = /etc/mperf
BASHDIR     = $(PREFIX)/share/bash-completion/completions
ZSHDIR      = $(PREFIX)/share/zsh/site-functions
# The one place of the version is the first line of the changelog.
VERSION := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' systemd/debian/changelog)

# As many jobs as there are harts, unless -j says otherwise (it wins over this) or a make above us has
# them. One short line a file: $(call short,CC) before a command; V=1 shows the command itself.
JOBS := $(shell nproc)
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(JOBS) --no-print-directory
endif
QUIET = $(if $(filter 1,$(V)),,@)
SILENT = $(findstring s,$(firstword -$(MAKEFLAGS)))
short = $(QUIET)$(if $(QUIET),$(if $(SILENT),,echo "$(1) $(patsubst build/%,%,$@)" && ))

CFLAGS  ?= -O2 -g
WERROR  ?=
SANITIZE ?=
PKGS_DAEMON = libsystemd libprotobuf-c sqlite3 jansson libxxhash zlib $(if $(WITH_BPF),libbpf)
PKGS_PLATFORM = jansson
PKGS_CLIENT = libprotobuf-c jansson ncursesw zlib
PKGS_ROOFS  = jansson
PKGS_NAMER  = libelf libdw libseccomp liblzma libzstd
PKG_CONFIG ?= pkg-config

# --- for another architecture: make CROSS=riscv64 or CROSS=arm64 --------------------------------
#
# Everything goes to $(BUILD)/$(CROSS), linked with Debian 13's libraries of that architecture, which
# are fetched by name into $(BUILD)/boards. CROSS_CC=gcc takes Debian's cross gcc instead of clang,
# into $(BUILD)/$(CROSS)-gcc. lld of Debian 12 cannot relax RISC-V code, hence one by its version.
ifdef CROSS
CROSS_CC ?= clang
CROSS_TRIPLE := $(patsubst arm64,aarch64,$(CROSS))-linux-gnu
PACKAGES_CROSS = make pkg-config python3 mmdebstrap protobuf-c-compiler clang lld-19 \
	$(if $(filter gcc,$(CROSS_CC)),gcc-$(CROSS_TRIPLE))
SYSROOTS := $(BUILD)/boards
SYSROOT  := $(SYSROOTS)/$(CROSS)
SYSROOT_LIB = $(SYSROOT)/usr/lib/$(CROSS_TRIPLE)
override BUILD := $(BUILD)/$(CROSS)$(filter-out -clang,-$(CROSS_CC))
PKG_CONFIG = PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT_LIB)/pkgconfig pkg-config
# Debian's cross gcc looks into folders of its own first, where an older C library may be.
CROSS_gcc = $(CROSS_TRIPLE)-gcc --sysroot=$(SYSROOT) -B$(SYSROOT_LIB) -isystem $(SYSROOT)/usr/include \
	-isystem $(SYSROOT)/usr/include/$(CROSS_TRIPLE)
CROSS_clang = clang --target=$(CROSS_TRIPLE) --sysroot=$(SYSROOT)
CC = $(CROSS_$(CROSS_CC))
CROSS_LDFLAGS_gcc = -L$(SYSROOT_LIB) -Wl,-rpath-link,$(SYSROOT_LIB)
CROSS_LDFLAGS_clang = -fuse-ld=lld-19
CROSS_LDFLAGS = $(CROSS_LDFLAGS_$(CROSS_CC))
endif

# Counts are cut at switches by BPF too where these are at hand (BPF=auto), without question (yes), or
# never (no). A program of its own compiles it: whatever CC is, the target is bpf.
BPF     ?= auto
CLANG   ?= clang
BPFTOOL ?= $(or $(shell command -v bpftool),$(wildcard /usr/sbin/bpftool))
HAS_BPF := $(and $(shell command -v $(CLANG)),$(BPFTOOL),$(or $(CROSS),$(shell $(PKG_CONFIG) --exists libbpf && echo yes)))
WITH_BPF := $(if $(filter no,$(BPF)),,$(if $(filter yes,$(BPF)),yes,$(HAS_BPF)))

# What reads machine code needs LLVM's C library: with it where it is at hand (CODE=auto), without
# question (yes), or never (no). Headers and library of one version come by its llvm-config, which is a
# program of this machine: it is left out of builds for another one.
CODE    ?= auto
CODE_LLVM := $(if $(or $(filter no,$(CODE)),$(CROSS)),,$(firstword $(foreach v,19 16 15 14,$(if $(shell command -v llvm-config-$(v)),$(v)))))
ifeq ($(CODE)$(CODE_LLVM),yes)
$(error CODE=yes needs LLVM: install llvm-19-dev)
endif
LLVM_CFLAGS = -isystem $(shell llvm-config-$(CODE_LLVM) --includedir)
LLVM_LIBS   = $(shell llvm-config-$(CODE_LLVM) --link-shared --ldflags --libs)

ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wno-missing-field-initializers -fno-omit-frame-pointer \
	-fno-strict-aliasing -fstack-protector-strong -I. -I$(BUILD)/gen \
	-DMPERF_VERSION='"$(VERSION)"' -DMPERF_LIBEXECDIR='"$(LIBEXECDIR)"' \
	-DMPERF_BINDIR='"$(BINDIR)"' -DMPERF_LIBDIR='"$(LIBDIR)"' -DMPERF_SBINDIR='"$(SBINDIR)"' -DMPERF_DATADIR='"$(DATADIR)"' \
	$(if $(WITH_BPF),-DMPERF_BPF) $(WERROR) $(SANITIZE) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(SANITIZE) $(CROSS_LDFLAGS) $(LDFLAGS) -Wl,--as-needed

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all programs demo check clean install install-code uninstall deb dist packages compile_commands help debug asan format
all: programs
ifeq ($(MAKELEVEL),0)
	@echo "built in $(BUILD); next: $(BUILD)/mperfctl hotspots -- PROGRAM, sudo make install, or make help"
endif
programs: $(BUILD)/mperfd $(BUILD)/mperf-namer $(BUILD)/mperf-roofs $(BUILD)/mperfctl $(BUILD)/mperf-generator $(BUILD)/mperf-platform-check $(BUILD)/platforms \
	$(BUILD)/libmperf-runtime.a $(BUILD)/libmperf-ompt.so $(if $(CODE_LLVM),$(BUILD)/mperf-code)

# --- what is made from what ------------------------------------------------------------------

src = $(wildcard $(1)/*.c)
obj = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %.bpf.c $(if $(WITH_BPF),,%_bpf.c),$(call src,$(1))))

# In order: a folder includes only folders before it.
DAEMON_ROOMS = kernel aside child debuginfod pmu pmu/event sampler count metric decode unwind naming attribute loops aggregate \
	store/segment store store/rollup answer query query/samples query/loops query/processes compare session doctor conf budget jobs service control
CLIENT_ROOMS = show options wire plot topdown flamegraph export report compare roofs measure roofline top commands

PROTO_ROOMS = base syntax roofs code
PROTO_OBJ  = $(call obj,proto) $(foreach d,$(PROTO_ROOMS),$(call obj,proto/$(d))) $(BUILD)/gen/proto/mperf.pb-c.o
PLATFORM_OBJ = $(filter-out %/main.o,$(call obj,platform-db))
DAEMON_OBJ = $(filter-out %/main.o,$(call obj,daemon))
NAMES_OBJ  = $(addprefix $(BUILD)/daemon/namer/,demangle.o names.o name_cut.o)
NAMER_OBJ  = $(filter-out %/main.o,$(call obj,daemon/namer))
CODE_OBJ   = $(filter-out %/main.o %/disassemble.o %/reader.o,$(call obj,daemon/code))

# What measures roofs. Its kernels are in assembly, one file an architecture, of which two are empty;
# extensions are named here for all assemblers, since not all know the directives that name them.
ROOFS_OBJ = $(filter-out %/main.o,$(call obj,client/roofs/measure)) \
	$(patsubst %.S,$(BUILD)/%.o,$(wildcard client/roofs/measure/*.S))
ROOFS_MACHINE := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
ROOFS_CLANG := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
ROOFS_ASFLAGS_aarch64 = -march=armv8.2-a+fp16+sve
ROOFS_ASFLAGS_riscv64 = $(if $(ROOFS_CLANG),-march=rv64gcv_zfh -menable-experimental-extensions)
$(BUILD)/client/roofs/measure/%.o: client/roofs/measure/%.S | $(if $(CROSS),$(SYSROOT).packages)
	@mkdir -p $(@D)
	$(call short,AS)$(CC) $(ROOFS_ASFLAGS_$(ROOFS_MACHINE)) -g -MMD -MP -c -o $@ $<

# What goes into other people's programs: one object, so that one reference brings all of it; without
# what would ask their C library for more, and with its own names hidden.
RUNTIME_CFLAGS = $(filter-out -fstack-protector-strong,$(ALL_CFLAGS)) -fPIC -fvisibility=hidden \
	-fsemantic-interposition -fno-stack-protector -fno-exceptions
RUNTIME_OBJ = $(call obj,runtime)
$(RUNTIME_OBJ): $(BUILD)/runtime/%.o: runtime/%.c | $(if $(CROSS),$(SYSROOT).packages)
	@mkdir -p $(@D)
	$(call short,CC)$(CC) $(RUNTIME_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/runtime/all-of-it.o: $(RUNTIME_OBJ)
	$(call short,LD)$(CC) $(CROSS_LDFLAGS) -r -nostdlib -o $@ $^
$(BUILD)/libmperf-runtime.a: $(BUILD)/runtime/all-of-it.o

# The OpenMP tool: a library that has all of it inside, but for what compiled code calls, and shows one
# name. Threads may still run in it when it is closed, so it stays.
OMPT_OBJ = $(call obj,runtime/ompt)
$(OMPT_OBJ): $(BUILD)/runtime/%.o: runtime/%.c | $(if $(CROSS),$(SYSROOT).packages)
	@mkdir -p $(@D)
	$(call short,CC)$(CC) $(RUNTIME_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/libompt.a: $(OMPT_OBJ)
$(BUILD)/libmperf-ompt.so: $(OMPT_OBJ) $(filter-out %/entry.o,$(RUNTIME_OBJ)) runtime/ompt/libmperf-ompt.map
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -shared -Wl,-z,nodelete $(if $(SANITIZE),,-Wl$(COMMA)-z$(COMMA)defs) -Wl,-soname,$(@F) \
		-Wl,--version-script=$(filter %.map,$^) -o $@ $(filter %.o,$^) -pthread

$(BUILD)/libproto.a: $(PROTO_OBJ)
$(BUILD)/libplatform.a: $(PLATFORM_OBJ)
$(BUILD)/libdaemon.a: $(DAEMON_OBJ)
$(BUILD)/libnames.a: $(NAMES_OBJ)
# What walks by tables is mperfd's, and the parser's where it walks by elfutils.
$(BUILD)/libnamer.a: $(NAMER_OBJ) $(call obj,daemon/unwind)
$(BUILD)/libcode.a: $(CODE_OBJ)
$(BUILD)/libroofs.a: $(ROOFS_OBJ)
# One archive for each folder of mperfd and mperfctl. $(LIBS_daemon/store) is that folder's and all before it, the
# last first, as linkers want it.
define room
$(BUILD)/$(1)/room.a: $(call obj,$(1))
LIBS_SO_FAR := $(BUILD)/$(1)/room.a $$(LIBS_SO_FAR)
LIBS_$(1) := $$(LIBS_SO_FAR)
endef
rooms = $(eval LIBS_SO_FAR :=)$(foreach d,$(2),$(eval $(call room,$(1)/$(d))))
$(call rooms,daemon,$(DAEMON_ROOMS))
$(call rooms,client,$(CLIENT_ROOMS))
$(BUILD)/client/export/room.a: $(BUILD)/gen/client/export/pprof.pb-c.o
$(BUILD)/%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(call short,AR)$(AR) rcs $@ $(filter %.o,$^)

LIBS_ROOMS  = $(LIBS_daemon/$(lastword $(DAEMON_ROOMS))) $(BUILD)/libnames.a $(BUILD)/libplatform.a
LIBS_DAEMON = $(BUILD)/libdaemon.a $(LIBS_ROOMS) $(BUILD)/libproto.a
LIBS_NAMER  = $(BUILD)/libnamer.a $(BUILD)/libproto.a
LIBS_ROOFS  = $(BUILD)/libroofs.a $(LIBS_client/roofs) $(BUILD)/libproto.a
LIBS_CLIENT = $(LIBS_client/$(lastword $(CLIENT_ROOMS))) $(BUILD)/libproto.a
DEMANGLE    = -liberty

$(BUILD)/mperfd: $(BUILD)/daemon/main.o $(LIBS_DAEMON)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_DAEMON)) $(DEMANGLE) -lm
$(BUILD)/mperf-namer: $(BUILD)/daemon/namer/main.o $(LIBS_NAMER)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_NAMER)) $(DEMANGLE)
$(BUILD)/mperf-roofs: $(BUILD)/client/roofs/measure/main.o $(LIBS_ROOFS)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_ROOFS)) -lprotobuf-c -lm -pthread
$(BUILD)/mperfctl: $(BUILD)/client/main.o $(LIBS_CLIENT)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_CLIENT)) -lm
$(BUILD)/mperf-generator: $(BUILD)/systemd/generator.o $(BUILD)/libproto.a
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_ROOFS)) -lm
$(BUILD)/mperf-platform-check: $(BUILD)/platform-db/main.o $(BUILD)/libplatform.a
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_PLATFORM))
$(BUILD)/mperf-code: $(addprefix $(BUILD)/daemon/code/,main.o reader.o disassemble.o) $(BUILD)/libcode.a $(LIBS_NAMER)
	$(call short,LD)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LLVM_LIBS) $(shell $(PKG_CONFIG) --libs $(PKGS_NAMER)) $(DEMANGLE) -lm
$(BUILD)/daemon/code/disassemble.o: ALL_CFLAGS += $(LLVM_CFLAGS)
# The data stands beside the programs, as an installed mperfd finds it from its own place.
$(BUILD)/platforms: | $(BUILD)/mperfd
	$(QUIET)ln -sfn $(abspath platform-db/platforms) $@

$(BUILD)/%.o: %.c | $(BUILD)/gen/all
	@mkdir -p $(@D)
	$(call short,CC)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c | $(BUILD)/gen/all
	$(call short,CC)$(CC) -std=c17 -I. -I$(BUILD)/gen -O2 -g $(SANITIZE) -c -o $@ $<

# --- what is generated: messages, and texts that become string literals -----------------------

TEXTS = $(wildcard $(foreach d,daemon/store client,$(foreach e,sql html css js bash,$(d)/*.$(e) $(d)/*/*.$(e)))) daemon/code/mnemonics.txt
SKELETONS = $(if $(WITH_BPF),$(addprefix $(BUILD)/gen/daemon/kernel/,switch.skel.h switch_plain.skel.h switch_sums.skel.h programs.skel.h exec.skel.h offcpu.skel.h wakers.skel.h))
MESSAGES = $(patsubst %.proto,$(BUILD)/gen/%.pb-c.c,proto/mperf.proto client/export/pprof.proto)
GENERATED = $(MESSAGES) $(patsubst %,$(BUILD)/gen/%.inc,$(TEXTS) $(patsubst %,%.sha256,$(filter %.js,$(TEXTS)))) $(SKELETONS)
$(BUILD)/gen/all: $(GENERATED) $(if $(CROSS),$(SYSROOT).packages)
	@touch $@
ifdef CROSS
$(SYSROOT).packages: tests/boards/debian.py
	@tests/packages $(PACKAGES_CROSS)
	tests/boards/debian.py $(CROSS) $(SYSROOTS)
endif
$(BUILD)/gen/%.pb-c.c: %.proto
	@mkdir -p $(@D)
	$(call short,GEN)protoc-c --c_out=$(BUILD)/gen $<
$(MESSAGES:.c=.h): %.h: %.c ;
# The hash by which a page's policy lets a script run: of all that is between <script> and </script>.
$(BUILD)/gen/%.js.sha256.inc: %.js
	@mkdir -p $(@D)
	$(call short,GEN)printf "\"'sha256-%s'\"\\n" "$$(env printf "$$({ echo; cat $<; } | sha256sum | sed -e 's/ .*//' -e 's/../\\x&/g')" | base64)" > $@
$(BUILD)/gen/%.inc: %
	@mkdir -p $(@D)
	$(call short,GEN)sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' $< > $@

# BPF programs, as C that carries them. Where clang finds the C library's headers is not said for the
# target bpf, so it is asked where they are for this machine.
BPF_CFLAGS = -target bpf -std=gnu17 -O2 -g -Wall -Wextra -Werror -I. -DMPERF_$(or $(CROSS),$(subst aarch64,arm64,$(shell uname -m))) \
	$(shell $(CLANG) -v -E - </dev/null 2>&1 | sed -n '/<...> search starts here:/,/^End/s/^ /-idirafter /p')
$(BUILD)/gen/%.bpf.o: %.bpf.c daemon/kernel/switch_layout.h daemon/kernel/programs_layout.h daemon/kernel/exec_layout.h daemon/kernel/offcpu_layout.h \
		daemon/kernel/offcpu_thread.h
	@mkdir -p $(@D)
	$(call short,BPF)$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(BUILD)/gen/%_plain.bpf.o: %.bpf.c daemon/kernel/switch_layout.h
	@mkdir -p $(@D)
	$(call short,BPF)$(CLANG) $(BPF_CFLAGS) -DSWITCH_PLAIN -c -o $@ $<
SKELETON_switch = switch_bpf_typed
SKELETON_switch_plain = switch_bpf_plain
SKELETON_switch_sums = switch_bpf_sums
SKELETON_programs = programs_bpf
SKELETON_exec = exec_bpf_program
SKELETON_offcpu = offcpu_bpf_program
SKELETON_wakers = wakers_bpf_program
# Linked once more by itself, it loses what only debuggers read.
$(BUILD)/gen/%.skel.h: $(BUILD)/gen/%.bpf.o
	$(QUIET)$(BPFTOOL) gen object $(<:.bpf.o=.o) $<
	$(call short,GEN)$(BPFTOOL) gen skeleton $(<:.bpf.o=.o) name $(SKELETON_$(*F)) > $@
# With BPF or without it: what was built the other way is built anew.
$(BUILD)/daemon/kernel/kernel.o: $(SKELETONS)
.SECONDARY: $(SKELETONS:.skel.h=.bpf.o)

-include $(shell find $(BUILD)/proto $(BUILD)/runtime $(BUILD)/platform-db $(BUILD)/daemon $(BUILD)/client $(BUILD)/systemd $(BUILD)/tests/unit $(BUILD)/tests/fuzz $(BUILD)/tests/bench $(BUILD)/tests/gate $(BUILD)/test-namer -type f -name '*.d' 2>/dev/null)

# --- packages: Debian names, read by apt; already installed ones cost one dpkg-query -------------

PACKAGES_BUILD = gcc make pkg-config libc6-dev libsystemd-dev libprotobuf-c-dev protobuf-c-compiler \
	libsqlite3-dev libxxhash-dev zlib1g-dev libelf-dev libdw-dev libiberty-dev libseccomp-dev liblzma-dev libzstd-dev libjansson-dev \
	libncurses-dev uthash-dev $(if $(filter no,$(BPF)),,clang bpftool libbpf-dev)
PACKAGES_DEMO = dpkg-dev tclsh xz-utils
packages:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_PASS) $(PACKAGES_DEMO)

# What the demo shows, and no more; SQLite's benchmark begins first, for one of its files takes longest.
demo:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO)
	$(QUIET)$(MAKE) PASS=no demo-programs
	$(GIVE_BACK)
	$(QUIET)tests/workloads/demo $(BUILD)
.PHONY: demo-programs
demo-programs: $(BUILD)/workloads/speedtest1 $(BUILD)/mperfd $(BUILD)/mperf-namer $(BUILD)/mperfctl $(BUILD)/platforms
$(BUILD)/workloads/speedtest1:
	@echo "CC $(patsubst build/%,%,$@) (SQLite's own benchmark, from Debian's source package)"
	@tests/workloads/speedtest1 $(BUILD) > /dev/null

# --- people -----------------------------------------------------------------------------------

# What goes where: SOURCE:TARGET:MODE. mperf.conf is apart, since it may have been edited.
MAN_PAGES = $(filter-out $(MAN_PAGES_PASS),$(wildcard man/*.[1578]))
EXAMPLES = $(shell find man/examples -type f)
PLATFORM_FILES = $(wildcard platform-db/platforms/*.json platform-db/platforms/*/*.json)
INSTALLED = \
	$(BUILD)/mperfctl:$(BINDIR)/mperfctl:755 \
	$(BUILD)/mperfd:$(SBINDIR)/mperfd:755 \
	$(BUILD)/mperf-namer:$(LIBEXECDIR)/mperf-namer:755 \
	$(BUILD)/mperf-roofs:$(LIBEXECDIR)/mperf-roofs:755 \
	$(BUILD)/libmperf-ompt.so:$(LIBDIR)/libmperf-ompt.so:644 \
	$(if $(CODE_LLVM),$(BUILD)/mperf-code:$(LIBEXECDIR)/mperf-code:755) \
	$(BUILD)/mperf-platform-check:$(BINDIR)/mperf-platform-check:755 \
	$(BUILD)/mperf-generator:$(GENERATORDIR)/mperf-generator:755 \
	$(BUILD)/mperfd.service:$(UNITDIR)/mperfd.service:644 \
	systemd/mperfd.socket:$(UNITDIR)/mperfd.socket:644 \
	$(BUILD)/mperf-debuginfod.service:$(UNITDIR)/mperf-debuginfod.service:644 \
	systemd/mperf-debuginfod.socket:$(UNITDIR)/mperf-debuginfod.socket:644 \
	systemd/mperf.sysusers:$(SYSUSERSDIR)/mperf.conf:644 \
	systemd/mperf.tmpfiles:$(TMPFILESDIR)/mperf.conf:644 \
	systemd/mperf.sysctl:$(SYSCTLDIR)/30-mperf.conf:644 \
	$(BUILD)/mperfctl.bash:$(BASHDIR)/mperfctl:644 \
	$(BUILD)/mperfctl.zsh:$(ZSHDIR)/_mperfctl:644 \
	platform-db/completion.bash:$(BASHDIR)/mperf-platform-check:644 \
	platform-db/completion.zsh:$(ZSHDIR)/_mperf-platform-check:644 \
	platform-db/README.md:$(DATADIR)/platforms/README.md:644 \
	$(foreach p,$(wildcard systemd/schedules/*.schedule),$(p):$(EXAMPLEDIR)/$(notdir $(p)):644) \
	$(foreach p,$(PLATFORM_FILES),$(p):$(patsubst platform-db/%,$(DATADIR)/%,$(p)):644) \
	$(foreach e,$(EXAMPLES),$(e):$(patsubst man/%,$(DOCDIR)/%,$(e)):$(if $(filter %.sh,$(e)),755,644)) \
	$(foreach p,$(MAN_PAGES),$(BUILD)/$(p):$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)):644)
part = $(word $(2),$(subst :, ,$(1)))

$(BUILD)/man/%: man/% systemd/debian/changelog
	@mkdir -p $(@D)
	@sed 's/@VERSION@/$(VERSION)/' $< > $@
UNITS = $(BUILD)/mperfd.service $(BUILD)/mperf-debuginfod.service
$(UNITS): $(BUILD)/%: systemd/%.in FORCE
	@mkdir -p $(@D)
	@sed 's|@SBINDIR@|$(SBINDIR)|g' $< > $@
FORCE:

# The tables that they are made from are in mperfctl, which must run here.
ifdef CROSS
RUNNABLE_BUILD = $(patsubst %/boards,%,$(SYSROOTS))
$(RUNNABLE_BUILD)/mperfctl: FORCE
	$(QUIET)$(MAKE) CROSS= BUILD=$(RUNNABLE_BUILD) $@
else
RUNNABLE_BUILD = $(BUILD)
endif
COMPLETIONS = $(BUILD)/mperfctl.bash $(BUILD)/mperfctl.zsh
$(COMPLETIONS): $(BUILD)/mperfctl.%: $(RUNNABLE_BUILD)/mperfctl
	$(call short,GEN)$< completion $* > $@

define NEWLINE


endef
install: programs $(UNITS) $(COMPLETIONS) $(addprefix $(BUILD)/,$(MAN_PAGES))
	$(foreach f,$(INSTALLED),install -D -m $(call part,$(f),3) $(call part,$(f),1) \
		$(DESTDIR)$(call part,$(f),2)$(NEWLINE)	)
	install -d -m 755 $(DESTDIR)$(CONFDIR)/schedules.d
	test -e $(DESTDIR)$(CONFDIR)/mperf.conf || \
		install -D -m 644 systemd/mperf.conf $(DESTDIR)$(CONFDIR)/mperf.conf

# What reads machine code by itself, for a package of its own.
install-code: $(BUILD)/mperf-code
	install -D -m 755 $< $(DESTDIR)$(LIBEXECDIR)/mperf-code

uninstall:
	rm -f $(foreach f,$(INSTALLED),$(DESTDIR)$(call part,$(f),2))
	! cmp -s systemd/mperf.conf $(DESTDIR)$(CONFDIR)/mperf.conf || rm $(DESTDIR)$(CONFDIR)/mperf.conf
	find $(DESTDIR)$(DATADIR) $(DESTDIR)$(DOCDIR) -depth -type d -empty -delete 2>/dev/null || true
	rmdir $(DESTDIR)$(LIBEXECDIR) $(DESTDIR)$(CONFDIR)/schedules.d $(DESTDIR)$(CONFDIR) $(DESTDIR)$(GENERATORDIR) \
		$(DESTDIR)$(PREFIX)/lib/mperf/* \
		$(DESTDIR)$(PREFIX)/lib/mperf 2>/dev/null || true

# Debian packages. Packaging lives in systemd/debian; a copy of the tree is built with it on top.
PACKAGES_DEB = build-essential debhelper dpkg-dev lintian
# The compiler that counts is a package of its own. It is left out with PASS=no, and of packages for
# another architecture: that compiler would be one of there, whose LLVM is not among its libraries.
DEB_PASS = $(if $(or $(CROSS),$(filter no,$(PASS))),,yes)
# So is what reads machine code, left out with CODE=no.
DEB_CODE = $(if $(or $(CROSS),$(filter no,$(CODE))),,yes)
# There is no public address to write to.
LINTIAN_NOT_YET = bogus-mail-host bogus-mail-host-in-debian-changelog
DEB_DIR = $(BUILD)/deb/mperf-$(VERSION)
# What sudo made is given to who called it, whose `make` shall go on.
GIVE_BACK = @[ -z "$$SUDO_UID" ] || chown -R "$$SUDO_UID:$$SUDO_GID" $(BUILD)
deb: $(if $(CROSS),$(SYSROOT).packages)
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEB) $(if $(CROSS),gcc-$(CROSS_TRIPLE)) \
		$(if $(DEB_PASS),g++ clang-19 libclang-19-dev) $(if $(or $(DEB_PASS),$(DEB_CODE)),llvm-19-dev)
	$(if $(CROSS),$(QUIET)$(MAKE) CROSS= BUILD=$(RUNNABLE_BUILD) $(RUNNABLE_BUILD)/mperfctl)
	@rm -rf $(BUILD)/deb && mkdir -p $(DEB_DIR)
	@tar -cf - --exclude=__pycache__ $(wildcard Makefile LICENSE LICENSES README.md client daemon \
		proto runtime llvm-pass platform-db systemd tests man) | tar -xf - -C $(DEB_DIR)
	@cp -r systemd/debian $(DEB_DIR)/debian
	$(if $(QUIET),@echo "building the package takes some minutes; what is said is in $(BUILD)/deb.log")
	$(QUIET){ cd $(DEB_DIR) && MAKEFLAGS= MAKELEVEL= DEB_BUILD_OPTIONS="parallel=$(JOBS) $(if $(CROSS),nocheck )$(DEB_BUILD_OPTIONS)" \
		DEB_BUILD_PROFILES="$(if $(DEB_PASS),,pkg.mperf.nopass) $(if $(DEB_CODE),,pkg.mperf.nocode) $(DEB_BUILD_PROFILES)" \
		MPERF_SYSROOTS=$(abspath $(SYSROOTS)) MPERF_RUNNABLE=$(abspath $(RUNNABLE_BUILD)) dpkg-buildpackage -us -uc -b $(if $(CROSS),-a$(CROSS) -d); } \
		$(if $(QUIET),>$(BUILD)/deb.log 2>&1 || { tail -n 40 $(BUILD)/deb.log >&2; exit 1; })
	$(QUIET)lintian --fail-on error,warning $(foreach t,$(LINTIAN_NOT_YET),--suppress-tags $(t)) \
		$(BUILD)/deb/*.changes
	@echo "lintian found neither errors nor warnings"
	$(GIVE_BACK)
	@echo "next: $(if $(CROSS),on the board:,sudo apt install) $(if $(filter /%,$(BUILD)),,./)$(BUILD)/deb/mperf_*.deb"

# What is released: the tree as it is committed.
dist: $(BUILD)/mperf-$(VERSION).tar.xz
$(BUILD)/mperf-$(VERSION).tar.xz: FORCE
	@mkdir -p $(@D)
	@git archive --prefix=mperf-$(VERSION)/ HEAD | xz > $@
	@echo "$@: unpack it anywhere, then: make"

clean:
	rm -rf $(BUILD)

# --- for those who work on it; more is in CONTRIBUTING.md -----------------------------------------

define HELP
make                        build all, into $(BUILD)
make test T=window          build one unit test with what it needs, and run it; CASE=name for one case
make check                  build and run all tests, as CI does; check-unit, check-system, check-pass,
                            check-fuzz and check-lint are its parts; RUN="--match WORD" picks tests
make debug, make asan       build without optimisation into $(BUILD)/debug; with sanitizers into $(BUILD)/asan
make compile_commands       write compile_commands.json for editors
make format                 bring C and C++ into form
make figures                print how large the house is: lines, headers, functions
make bench                  measure what mperf costs; BENCH=quick for minutes
make demo                   build, and show mperf on SQLite's own benchmark
make install, deb, dist     install below $(PREFIX), make Debian packages, make an archive of the sources
make packages               install the Debian packages that are needed to build
V=1 shows commands, CC=clang and CROSS=riscv64 (or arm64) choose the compiler.
endef
export HELP
help:
	@echo "$$HELP"

debug:
	+$(QUIET)$(MAKE) BUILD=$(BUILD)/debug CFLAGS="-O0 -g3" programs
asan:
	+$(QUIET)$(ASAN_MAKE) programs

# What make would run, as editors want it.
compile_commands:
	$(QUIET)$(MAKE) $(GENERATED)
	$(QUIET){ echo '['; $(MAKE) -nB V=1 SANITIZE= programs unit-tests | \
		sed -n 's/\\/\\\\/g; s/"/\\"/g; s|^\(.* -c -o \([^ ]*\) \([^ ]*\)\)$$|{"directory": "$(CURDIR)", "command": "\1", "output": "\2", "file": "\3"},|p' | \
		sed '$$ s/,$$//'; echo ']'; } > $@.json
	@echo "wrote $@.json"

CLANG_FORMAT = clang-format-19
format:
	@tests/packages git $(CLANG_FORMAT)
	$(QUIET)git ls-files '*.c' '*.h' '*.cc' | xargs $(CLANG_FORMAT) -i

include llvm-pass/pass.mk
include tests/tests.mk
