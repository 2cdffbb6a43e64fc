/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Copied stacks at the namer, and the tables by which they are walked
 *
 *      sample ──all tables are here──▶ frames, at once
 *         └──job──▶ the missing table is made by the parser ──▶ frames
 *              └── a rule that no table can say ──▶ mappings and stack to the parser ──▶ frames
 */

#include <elf.h>
#include <sys/queue.h>

#include "daemon/namer/message.h"
#include "daemon/naming/namer.h"
#include "daemon/naming/quota.h"
#include "daemon/naming/user.h"
#include "daemon/unwind/walk.h"

/* Memory of all tables, at most; or this share of the machine's: 2 MB of 256. */
#define NAMER_TABLES_BYTES_MAX ((size_t)32 << 20)
#define NAMER_TABLES_SHARE 128

/* Source: elf.h; the three machines whose perf registers the unwinder knows, and those of the 32-bit programs
 * that their kernels run. EM_NONE: stacks keep only their leaf. */
#if defined(__x86_64__)
#define UNWIND_MACHINE EM_X86_64
#define UNWIND_MACHINE_32 EM_386
#elif defined(__aarch64__)
#define UNWIND_MACHINE EM_AARCH64
#define UNWIND_MACHINE_32 EM_ARM
#elif defined(__riscv)
#define UNWIND_MACHINE EM_RISCV
#define UNWIND_MACHINE_32 EM_NONE
#else
#define UNWIND_MACHINE EM_NONE
#define UNWIND_MACHINE_32 EM_NONE
#endif
#define NAMER_BARRED_MAX 64u /* processes remembered as causes; the oldest is forgotten */

struct slot;

enum table_state {
	TABLE_UNASKED,
	TABLE_WANTED,  /* by a stack */
	TABLE_HELD,    /* the slot has it */
	TABLE_EMPTY,   /* nothing describes the code */
	TABLE_FOREIGN, /* only elfutils reads it */
	TABLE_NO_FILE, /* its file could not be had; perhaps later */
};

/* A copy of a process's mappings, shared by the stacks that were sampled with them. */
struct snapshot {
	uint64_t generation; /* of the space, marked for a 32-bit program */
	uint32_t n_users;
	uint16_t machine; /* e_machine of its registers */
	pid_t pid;
	struct map *map;
	uint32_t n_maps;
	bool asked;         /* the opener was asked for its files */
	bool refused;       /* the parser cannot use it */
	uint32_t sent;      /* parser generation that has it; 0: none */
	uint32_t progress;  /* parser generation that the next two are about */
	uint32_t n_sent;    /* maps of it sent so far */
	uint32_t next_file; /* map whose file is sent next */
	UT_hash_handle hh;
};

struct job {
	TAILQ_ENTRY(job) queued;
	struct snapshot *snapshot; /* NULL: fails at once */
	struct naming_user *user;
	void *ticket;
	uint64_t regs_mask;
	uint32_t n_regs, n_stack;
	uint32_t retries;
	struct slot *wants; /* its table is needed for the next step; NULL: none is */
	uint32_t n_tables;  /* wanted so far */
	bool needs_elfutils;
	uint8_t bytes[]; /* registers, stack */
};

struct barred {
	pid_t pid;
	uid_t uid;
	struct account account;
};

/* --- what each file owns ---------------------------------------------------------------------- */

/* callers.c */
struct walking {
	struct unwound unwound; /* of the last walk */
	uint64_t n;             /* walks that found a caller */
};

/* tables.c */
struct tables {
	struct slot_list held; /* slots with a table, least recently used first */
	struct quota authors;  /* bytes of each author's tables */
	size_t n_bytes, n_bytes_max;
	bool changed; /* since the last tables_take_change */
};

/* table_ask.c */
struct arriving {
	struct unwind_table *table;
	size_t n; /* bytes of its memory that are here */
};
