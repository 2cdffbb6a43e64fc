/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A replayed machine with the platforms of its cores, for tests that need both */

#include "daemon/pmu/cores.h"
#include "daemon/sampler/ladder.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/replay.h"

struct core_case {
	struct replay *replay;
	const struct kernel *kernel;
	struct machine machine;
	struct cores *cores;
};

/* A machine of tests/platforms, with the built-in platforms. */
struct core_case core_case_of(const char *name);
/* Any machine as JSON; platforms from a folder, NULL: the built-in ones. */
struct core_case core_case_made(const char *json, const char *platforms);
/* Two harts of a RISC-V core with that identity, as members of hwprobe, with the built-in platforms. Each
 * generic event counts 1,000 a microsecond, each raw one 1. */
struct core_case core_case_riscv(const char *identity);
#define CORE_CVA6 "\"mvendorid\":\"0x602\",\"marchid\":\"0x3\",\"mimpid\":\"0x0\""
#define CORE_KUNMINGHU "\"mvendorid\":\"0x86f\",\"marchid\":\"0x19\",\"mimpid\":\"0x0\""
/* Nothing may be open or mapped any more. */
void core_case_end(struct core_case *c);

/* The plan that the ladder finds for a hart of it. */
struct plan core_case_plan(const struct core_case *c, int hart, bool user_only);

/* What -e with that text means there; must parse. */
struct event_list core_case_events(const struct core_case *c, const char *text);

/* Two harts of two kinds, "Big" (marchid 0x1) and "Little" (0x2), whose event "own_cycles" has the
 * codes 0x22 and 0x33, and leads on both; "big_only" is 0x44, on Big alone. L1-dcache-loads is 0x55
 * and 0x66. The kernel maps cycles and instructions alone, and these do not sample. */
struct core_case core_case_two_kinds(struct made_folder *folder);
