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
#include "daemon/naming/user.h"
#include "daemon/unwind/walk.h"

/* Memory of all tables, at most: this, or 1 / NAMER_TABLES_SHARE of the machine's memory (2 MB of 256), whichever is
 * less. The largest that is made takes half of it. */
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

struct namer;
struct slot;
struct tables;
struct unwinding;

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
	uint64_t queued_ns;
	bool needs_elfutils;
	uint8_t bytes[]; /* registers, stack */
};

struct barred {
	pid_t pid;
	uid_t uid;
	struct account account;
};

/* --- callers.c -------------------------------------------------------------------------------- */

/* Walk by tables a stack that came at that time. The result is filled in after UNWIND_WALKED; *ret_missing: whose table is
 * wanted. */
enum unwind_outcome callers_find(struct namer *n, const struct space *space,
	const struct unwind_sample *sample, uint64_t came_ns, struct unwind_result *ret_result,
	struct file **ret_missing);
uint16_t callers_machine(uint64_t regs_abi);   /* e_machine, EM_NONE */
uint64_t callers_found(const struct namer *n); /* walks that found one */

/* --- table_ask.c ------------------------------------------------------------------------------ */

/* Note that a stack needs the slot's table, unless it has one or cannot have one; of generated code, a newer one. -ENOMEM. */
int slot_want_table(struct namer *n, struct slot *s, struct naming_user *u);
/* Have the parser make it. As parser_ask. */
int slot_ask_table(struct namer *n, struct slot *s);
/* Take a piece of it. PARSER_MORE: others will come; an outcome above 0 (enum message_table_outcome); -EBADMSG,
 * -ENOMEM. The slot holds the table after TABLE_MADE. */
int slot_hear_table(struct namer *n, struct slot *s, const uint8_t *bytes, size_t n_bytes);
/* The parser that sent it has ended. */
void table_drop_arriving(struct namer *n);

/* --- tables.c --------------------------------------------------------------------------------- */

/* This many bytes, or 1 / part of the machine's memory if that is less. */
size_t part_of_memory(size_t most, uint64_t part);
void tables_begin(struct tables *t);
void tables_end(struct tables *t);
/* Memory of all tables, at most. */
size_t tables_bytes_max(const struct namer *n);
/* The slot holds that table, which it takes over, for that author of its file. Others are freed until there is room. */
void slot_hold_table(struct namer *n, struct slot *s, struct unwind_table *t, uid_t author);
/* Note that a stack is walked by the slot's table. */
void slot_use_table(struct namer *n, struct slot *s);
/* The slot has no table, for this reason; stacks that wait for it go on. */
void slot_settle_table(struct namer *n, struct slot *s, enum table_state state);
/* May a new table of generated code describe more than the slot's? The file has grown since that one came, or since
 * there was nothing for one, which was at least NAMER_RETRY_NS before this time. */
bool slot_table_is_old(const struct slot *s, uint64_t since_ns);
/* Does the slot's table describe the code at that address, which was not replaced since? */
bool slot_table_describes(const struct slot *s, uint64_t address);
/* Other code has come to [from, to) since the table was made; or perhaps everywhere, as when the file was rewritten. */
void slot_outdate_table(struct slot *s, uint64_t from, uint64_t to);
void slot_outdate_whole_table(struct slot *s);
/* Let all stacks that wait for a table be looked at. */
void tables_note(struct namer *n);
/* Was tables_note called since the last call, or a slot's table settled? */
bool tables_take_change(struct namer *n);
