# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# One Makefile for the whole house: every .c below a folder becomes an object, the folders become
# archives, and three programs are linked from them. Nothing is written outside $(BUILD).

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR      = $(PREFIX)/bin
SBINDIR     = $(PREFIX)/sbin
LIBEXECDIR  = $(PREFIX)/libexec/mperf
MANDIR      = $(PREFIX)/share/man
VERSION = 0.1.0

CFLAGS  ?= -O2 -g
WERROR  ?=
SANITIZE ?=
PKGS_DAEMON = libsystemd libprotobuf-c sqlite3
PKGS_CLIENT = libprotobuf-c jansson
PKGS_NAMER  = libelf libdw libseccomp liblzma
PKG_CONFIG ?= pkg-config

ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wno-missing-field-initializers -fno-omit-frame-pointer \
	-fno-strict-aliasing -fstack-protector-strong -I. -I$(BUILD)/gen \
	-DMPERF_VERSION='"$(VERSION)"' -DMPERF_LIBEXECDIR='"$(LIBEXECDIR)"' \
	-DMPERF_SBINDIR='"$(SBINDIR)"' \
	$(WERROR) $(SANITIZE) $(CFLAGS)
ALL_LDFLAGS = $(SANITIZE) $(LDFLAGS) -Wl,--as-needed

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all demo check clean install uninstall packages compile_commands
all: $(BUILD)/mperfd $(BUILD)/mperf-namer $(BUILD)/mperfctl

# --- what is made from what ------------------------------------------------------------------

src = $(wildcard $(1)/*.c)
obj = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))

PROTO_OBJ  = $(call obj,proto) $(BUILD)/gen/proto/mperf.pb-c.o
DAEMON_OBJ = $(foreach d,pmu decode attribute aggregate store query control,$(call obj,daemon/$(d))) \
	$(BUILD)/daemon/daemon.o
NAMER_OBJ  = $(filter-out %/main.o,$(call obj,daemon/namer))
CLIENT_OBJ = $(filter-out %/main.o,$(call obj,client))

$(BUILD)/libproto.a: $(PROTO_OBJ)
$(BUILD)/libdaemon.a: $(DAEMON_OBJ)
$(BUILD)/libnamer.a: $(NAMER_OBJ)
$(BUILD)/libclient.a: $(CLIENT_OBJ)
# Appended (q), not replaced: stations may have files of the same name.
$(BUILD)/lib%.a:
	@rm -f $@
	$(AR) qcs $@ $(filter %.o,$^)

LIBS_DAEMON = $(BUILD)/libdaemon.a $(BUILD)/libproto.a
LIBS_NAMER  = $(BUILD)/libnamer.a
LIBS_CLIENT = $(BUILD)/libclient.a $(BUILD)/libproto.a
DEMANGLE    = -liberty

$(BUILD)/mperfd: $(BUILD)/daemon/main.o $(LIBS_DAEMON)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_DAEMON))
$(BUILD)/mperf-namer: $(BUILD)/daemon/namer/main.o $(LIBS_NAMER)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_NAMER)) $(DEMANGLE)
$(BUILD)/mperfctl: $(BUILD)/client/main.o $(LIBS_CLIENT)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell $(PKG_CONFIG) --libs $(PKGS_CLIENT)) -lm

$(BUILD)/%.o: %.c | $(BUILD)/gen/all
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	$(CC) -std=c17 -I. -I$(BUILD)/gen -O2 -g $(SANITIZE) -c -o $@ $<

# --- what is generated: messages, and texts that become string literals -----------------------

TEXTS = $(wildcard daemon/store/*.sql client/*.html client/*.css client/*.js)
GENERATED = $(BUILD)/gen/proto/mperf.pb-c.c $(patsubst %,$(BUILD)/gen/%.inc,$(TEXTS))
$(BUILD)/gen/all: $(GENERATED)
	@touch $@
$(BUILD)/gen/proto/mperf.pb-c.c: proto/mperf.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(BUILD)/gen $<
$(BUILD)/gen/proto/mperf.pb-c.h: $(BUILD)/gen/proto/mperf.pb-c.c ;
$(BUILD)/gen/%.inc: %
	@mkdir -p $(@D)
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/.*/"&\\n"/' $< > $@

-include $(shell find $(BUILD)/proto $(BUILD)/daemon $(BUILD)/client $(BUILD)/tests/unit $(BUILD)/tests/fuzz $(BUILD)/test-namer -type f -name '*.d' 2>/dev/null)

# --- packages: Debian names, read by apt; already installed ones cost one dpkg-query -------------

PACKAGES_BUILD = gcc make pkg-config libc6-dev libsystemd-dev libprotobuf-c-dev protobuf-c-compiler \
	libsqlite3-dev libelf-dev libdw-dev libiberty-dev libseccomp-dev liblzma-dev libjansson-dev uthash-dev
PACKAGES_DEMO = dpkg-dev tclsh xz-utils
packages:
	@tests/packages $(PACKAGES_BUILD) $(PACKAGES_DEMO)

demo: packages
	$(MAKE) all
	tests/workloads/demo $(BUILD)

# --- people -----------------------------------------------------------------------------------

install: all
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SBINDIR) $(DESTDIR)$(LIBEXECDIR) \
		$(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man8
	install -m 755 $(BUILD)/mperfctl $(DESTDIR)$(BINDIR)/mperfctl
	install -m 755 $(BUILD)/mperfd $(DESTDIR)$(SBINDIR)/mperfd
	install -m 755 $(BUILD)/mperf-namer $(DESTDIR)$(LIBEXECDIR)/mperf-namer
	install -m 644 man/mperfctl.1 $(DESTDIR)$(MANDIR)/man1/mperfctl.1
	install -m 644 man/mperfd.8 $(DESTDIR)$(MANDIR)/man8/mperfd.8

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/mperfctl $(DESTDIR)$(SBINDIR)/mperfd \
		$(DESTDIR)$(LIBEXECDIR)/mperf-namer \
		$(DESTDIR)$(MANDIR)/man1/mperfctl.1 $(DESTDIR)$(MANDIR)/man8/mperfd.8
	rmdir $(DESTDIR)$(LIBEXECDIR) 2>/dev/null || true

clean:
	rm -rf $(BUILD)

include tests/tests.mk
