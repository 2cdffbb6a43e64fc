# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The pass: one plugin for each LLVM that is installed with its headers, from one source. It runs in
# compilers of this machine, whatever they compile for, and so is neither cross-built nor built with
# sanitizers. PASS=no leaves it out, PASS=yes requires both versions,
# PASS_VERSIONS=19 only that one.
#
# What takes long is to read LLVM's headers: compiled as one file, the pass takes 21 s of a processor,
# where its files one by one take 100 (LLVM 19). PASS_UNITY says for which LLVMs it is: all, no, or versions. The newest is
# compiled file by file, for those who work on it, and for lint, which sees whose functions a file calls.

PASS          ?= auto
PASS_VERSIONS = 16 19
PASS_FOUND   := $(if $(or $(filter no,$(PASS)),$(CROSS),$(SANITIZE)),,$(if $(filter yes,$(PASS)),$(PASS_VERSIONS),$(foreach v,$(PASS_VERSIONS),$(if $(shell command -v llvm-config-$(v)),$(v)))))
PASS_PLUGINS  = $(foreach v,$(PASS_FOUND),$(BUILD)/llvm-$(v)/mperf-pass.so)
PASS_UNITY   ?= $(filter-out $(lastword $(PASS_FOUND)),$(PASS_FOUND))
PASS_SRC      = $(wildcard llvm-pass/*.cc)
PASS_PARTS    = $(if $(filter all $(1),$(PASS_UNITY)),unity,$(PASS_SRC:llvm-pass/%.cc=%))
PACKAGES_PASS = g++ clang-19 llvm-19-dev libclang-19-dev clang-16? llvm-16-dev? libclang-16-dev?
# A plugin of its own for pragmas, which needs clang's headers beside LLVM's: where these are missing,
# mperf-cc works without it, and pragmas are unknown.
PRAGMAS_FOUND  := $(foreach v,$(PASS_FOUND),$(if $(wildcard $(shell llvm-config-$(v) --includedir)/clang/Lex/Pragma.h),$(v)))
PRAGMAS_PLUGINS = $(foreach v,$(PRAGMAS_FOUND),$(BUILD)/llvm-$(v)/mperf-pragmas.so)
PRAGMAS_SRC     = $(wildcard llvm-pass/pragmas/*.cc)
# LLVM is built without exceptions and type information, so its plugins must be, too.
PASS_CXXFLAGS = -std=c++17 -fPIC -fno-rtti -fno-exceptions -Wall -Wextra $(WERROR) -I. $(CXXFLAGS)
CXXFLAGS     ?= -O2

define PASS_COMPILE
	@mkdir -p $$(@D)
	$$(call short,CXX)$$(CXX) $$(PASS_CXXFLAGS) -isystem $$(shell llvm-config-$(1) --includedir) -D_GNU_SOURCE \
		-D__STDC_CONSTANT_MACROS -D__STDC_FORMAT_MACROS -D__STDC_LIMIT_MACROS -MMD -MP -c -o $$@ $$<
endef
define PASS_RULES
$$(BUILD)/llvm-$(1)/unity.cc: FORCE
	@mkdir -p $$(@D)
	@printf '#include "%s"\n' $$(PASS_SRC) | cmp -s - $$@ || printf '#include "%s"\n' $$(PASS_SRC) > $$@
$$(BUILD)/llvm-$(1)/unity.o: $$(BUILD)/llvm-$(1)/unity.cc
$(PASS_COMPILE)
$$(BUILD)/llvm-$(1)/%.o: llvm-pass/%.cc
$(PASS_COMPILE)
# The compiler that loads it provides the LLVM symbols it needs.
$$(BUILD)/llvm-$(1)/mperf-pass.so: $(PASS_PARTS:%=$$(BUILD)/llvm-$(1)/%.o)
	$$(call short,LD)$$(CXX) -shared $$(LDFLAGS) -o $$@ $$^
$$(BUILD)/llvm-$(1)/mperf-pragmas.so: $$(patsubst llvm-pass/%.cc,$$(BUILD)/llvm-$(1)/%.o,$$(PRAGMAS_SRC))
	$$(call short,LD)$$(CXX) -shared $$(LDFLAGS) -o $$@ $$^
endef
$(foreach v,$(PASS_FOUND),$(eval $(call PASS_RULES,$(v))))

$(BUILD)/mperf-cc $(BUILD)/mperf-c++: llvm-pass/mperf-cc
	@mkdir -p $(@D)
	$(QUIET)install -m 755 $< $@
$(BUILD)/include/mperf.h: runtime/mperf.h
	$(QUIET)install -D -m 644 $< $@
$(BUILD)/mperf.pc: llvm-pass/mperf.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|g; s|@VERSION@|$(VERSION)|g' \
		$(foreach v,$(filter-out $(PASS_FOUND),$(PASS_VERSIONS)),-e '/^plugin$(v)=/d') $< > $@

$(BUILD)/mperf-c++.1: llvm-pass/pass.mk
	@mkdir -p $(@D)
	@echo .so man1/mperf-cc.1 > $@

# Runtimes for other targets, which mperf-cc --target= links:
# RUNTIME_TARGETS="riscv64 arm64 ppc64el", by Debian's names. Their C libraries are Debian's too
# (libc6-dev-riscv64-cross). Without -g: Debian 12's linker does not know all relocations that
# clang 19 uses there for RISC-V. Source: binutils 2.41, R_RISCV_SET_ULEB128.
RUNTIME_TARGETS  ?=
RUNTIME_CLANG     = clang-$(lastword $(PASS_FOUND))
RUNTIME_ARCHIVES  = $(foreach a,$(RUNTIME_TARGETS),$(BUILD)/$(a)/libmperf-runtime.a)
target_of         = $(patsubst ppc64el,powerpc64le,$(patsubst arm64,aarch64,$(patsubst amd64,x86_64,$(1))))-linux-gnu
$(RUNTIME_ARCHIVES): $(BUILD)/%/libmperf-runtime.a: FORCE
	+@$(MAKE) --no-print-directory BUILD=$(BUILD)/$* CROSS= BPF=no PASS=no RUNTIME_TARGETS= \
		CFLAGS=-O2 CC="$(RUNTIME_CLANG) --target=$(call target_of,$*)" $@

.PHONY: pass
pass: $(PASS_PLUGINS) $(PRAGMAS_PLUGINS) $(RUNTIME_ARCHIVES) $(if $(PASS_FOUND),$(BUILD)/mperf-cc $(BUILD)/mperf-c++ $(BUILD)/mperf-c++.1 $(BUILD)/mperf.pc \
	$(addprefix $(BUILD)/include/,$(notdir $(wildcard runtime/mperf.h))))
programs: pass

# Installed files: SOURCE:TARGET:MODE. The package mperf-cc uses install-pass, and mperf
# PASS=no install.
PKGCONFIGDIR  ?= $(PREFIX)/lib/pkgconfig
MAN_PAGES_PASS = man/mperf-cc.1 man/mperf-runtime.7
INSTALLED_PASS = \
	$(foreach v,$(PASS_FOUND),$(BUILD)/llvm-$(v)/mperf-pass.so:$(PREFIX)/lib/mperf/llvm-$(v)/mperf-pass.so:644) \
	$(foreach v,$(PRAGMAS_FOUND),$(BUILD)/llvm-$(v)/mperf-pragmas.so:$(PREFIX)/lib/mperf/llvm-$(v)/mperf-pragmas.so:644) \
	$(BUILD)/libmperf-runtime.a:$(PREFIX)/lib/mperf/libmperf-runtime.a:644 \
	$(foreach a,$(RUNTIME_TARGETS),$(BUILD)/$(a)/libmperf-runtime.a:$(PREFIX)/lib/mperf/$(a)/libmperf-runtime.a:644) \
	runtime/mperf.h:$(PREFIX)/include/mperf.h:644 \
	$(BUILD)/mperf-cc:$(BINDIR)/mperf-cc:755 \
	$(BUILD)/mperf-c++:$(BINDIR)/mperf-c++:755 \
	$(BUILD)/mperf.pc:$(PKGCONFIGDIR)/mperf.pc:644 \
	$(BUILD)/mperf-c++.1:$(MANDIR)/man1/mperf-c++.1:644 \
	$(foreach p,$(MAN_PAGES_PASS),$(BUILD)/$(p):$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)):644)
INSTALLED += $(if $(PASS_FOUND),$(INSTALLED_PASS))

.PHONY: install-pass
install-pass: pass $(BUILD)/libmperf-runtime.a $(addprefix $(BUILD)/,$(MAN_PAGES_PASS))
	$(if $(PASS_FOUND),,$(error no plugin is built: install llvm-19-dev or llvm-16-dev))
	$(foreach f,$(INSTALLED_PASS),install -D -m $(call part,$(f),3) $(call part,$(f),1) \
		$(DESTDIR)$(call part,$(f),2)$(NEWLINE)	)

-include $(wildcard $(BUILD)/llvm-*/*.d $(BUILD)/llvm-*/pragmas/*.d)
