# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The pass: one plugin for each LLVM that is installed with its headers, from one source. It runs in
# compilers of this machine, whatever they compile for, and so is neither cross-built nor built with
# sanitizers. PASS=no leaves it out, PASS=yes insists on both.

PASS          ?= auto
PASS_VERSIONS = 16 19
PASS_FOUND   := $(if $(or $(filter no,$(PASS)),$(CROSS),$(SANITIZE)),,$(if $(filter yes,$(PASS)),$(PASS_VERSIONS),$(foreach v,$(PASS_VERSIONS),$(if $(shell command -v llvm-config-$(v)),$(v)))))
PASS_PLUGINS  = $(foreach v,$(PASS_FOUND),$(BUILD)/llvm-$(v)/mperf-pass.so)
PASS_SRC      = $(wildcard llvm-pass/*.cc)
PACKAGES_PASS = g++ clang-16 clang-19 llvm-16-dev llvm-19-dev
# LLVM is built without exceptions and type information, so what it loads is, too.
PASS_CXXFLAGS = -std=c++17 -fPIC -fno-rtti -fno-exceptions -Wall -Wextra $(WERROR) -I. $(CXXFLAGS)
CXXFLAGS     ?= -O2

define PASS_RULES
$$(BUILD)/llvm-$(1)/%.o: llvm-pass/%.cc
	@mkdir -p $$(@D)
	$$(CXX) $$(PASS_CXXFLAGS) -isystem $$(shell llvm-config-$(1) --includedir) -D_GNU_SOURCE \
		-D__STDC_CONSTANT_MACROS -D__STDC_FORMAT_MACROS -D__STDC_LIMIT_MACROS -MMD -MP -c -o $$@ $$<
# What it needs of LLVM is in the compiler that loads it.
$$(BUILD)/llvm-$(1)/mperf-pass.so: $$(patsubst llvm-pass/%.cc,$$(BUILD)/llvm-$(1)/%.o,$$(PASS_SRC))
	$$(CXX) -shared -o $$@ $$^
endef
$(foreach v,$(PASS_FOUND),$(eval $(call PASS_RULES,$(v))))

$(BUILD)/mperf-cc $(BUILD)/mperf-c++: llvm-pass/mperf-cc
	@mkdir -p $(@D)
	install -m 755 $< $@
$(BUILD)/include/mperf.h: runtime/mperf.h
	install -D -m 644 $< $@
$(BUILD)/mperf.pc: llvm-pass/mperf.pc.in FORCE
	@mkdir -p $(@D)
	@sed 's|@PREFIX@|$(PREFIX)|g; s|@VERSION@|$(VERSION)|g' $< > $@

.PHONY: pass
pass: $(PASS_PLUGINS) $(if $(PASS_FOUND),$(BUILD)/mperf-cc $(BUILD)/mperf-c++ $(BUILD)/mperf.pc \
	$(addprefix $(BUILD)/include/,$(notdir $(wildcard runtime/mperf.h))))
all: pass

ifneq ($(PASS_FOUND),)
INSTALLED += \
	$(foreach v,$(PASS_FOUND),$(BUILD)/llvm-$(v)/mperf-pass.so:$(PREFIX)/lib/mperf/llvm-$(v)/mperf-pass.so:644) \
	$(if $(wildcard runtime/mperf.h),$(BUILD)/libmperf-runtime.a:$(PREFIX)/lib/mperf/libmperf-runtime.a:644 \
		runtime/mperf.h:$(PREFIX)/include/mperf.h:644) \
	$(BUILD)/mperf-cc:$(BINDIR)/mperf-cc:755 \
	$(BUILD)/mperf-c++:$(BINDIR)/mperf-c++:755 \
	$(BUILD)/mperf.pc:$(PREFIX)/lib/pkgconfig/mperf.pc:644
endif

-include $(wildcard $(BUILD)/llvm-*/*.d)
