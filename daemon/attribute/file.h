/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Files that code was mapped from, and the frames in them
 *
 * A frame is (file, offset) and is named once. A file is told from another by build id where there
 * is one, else by (device, inode, path); and one that processes of several users mapped is a file of
 * each of them: they may differ in who may read its names, and anybody can make a file with the
 * build id of another. Code that is in no file has a file of its own kind: the kernel, each module,
 * the vdso, the JIT area of one process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/hash_table.h"

#define FILES_MAX 65536     /* distinct executables and libraries; a full Debian has fewer. Beyond: LOSS_ROOM */
#define FRAMES_MAX 4000000  /* 64 bytes each: 256 MB; beyond it new frames are counted LOSS_ROOM */

/* Stored: do not renumber. */
enum file_kind {
	FILE_ELF = 1,        /* executable, library; offset is the file offset */
	FILE_KERNEL = 2,     /* offset from _stext */
	FILE_MODULE = 3,     /* offset from the module's start */
	FILE_VDSO = 4,       /* offset from its start */
	FILE_PERF_MAP = 5,   /* /tmp/perf-PID.map of one process; offset is the address */
	FILE_JITDUMP = 6,    /* jit-PID.dump of one process; offset is the address */
	FILE_ANON = 7,       /* executable memory without a name; offset is the address */
	FILE_UNKNOWN = 8,    /* address in no mapping that we know; offset is the address */
};

/* What became of a file at the namer. Stored: do not renumber. */
enum file_state {
	FILE_UNSEEN = 0,     /* not asked for yet */
	FILE_OPENING = 1,
	FILE_READY = 2,      /* opened; frames can be named */
	FILE_VANISHED = 3,   /* no longer there, or replaced by another */
	FILE_REFUSED = 4,    /* may not be opened by us */
	FILE_NO_SYMBOLS = 5, /* parsed; has no symbols and no debug information */
	FILE_MALFORMED = 6,  /* does not parse */
	FILE_HUNG = 7,       /* opening did not come back in time: opener was killed */
	FILE_SPUN = 8,       /* the parser used up its time: parser was killed */
	FILE_CRASHED = 9,    /* the parser died over it */
	FILE_OVERSIZE = 10,  /* above the limits of size or memory */
};
const char *file_state_says(enum file_state s); /* static: "the parser ran out of time" */

struct file {
	uint32_t id;             /* from 1, in order of sighting; key in the store */
	enum file_kind kind;
	enum file_state state;
	char *path;              /* as the process saw it; "[kernel]", "[vdso]", "[nf_tables]" */
	uint8_t build_id[20];
	uint8_t n_build_id;
	uint32_t major, minor;
	uint64_t inode;
	/* of the inode number, which is used again; of generated code: when the program began (its
	 * exec), which may follow another under the same pid; 0: not known (yet) */
	uint64_t generation;
	bool replaced;           /* by now another file is found where this one was */
	bool deleted;            /* path ended in " (deleted)", which was cut off */

	/* where it can be opened from while the process lives */
	pid_t pid;               /* who mapped it */
	uint64_t pid_start_ns;
	uint64_t map_start, map_end; /* for /proc/PID/map_files */
	uint64_t mapped_ns;      /* CLOCK_MONOTONIC, of the first mapping seen; 0: unknown. What was written
	                            to it later did not run then */
	uid_t uid;               /* whose process, so to whom the names are shown; -1: unknown */
	uint32_t age;            /* of the table when it was last asked for */

	bool has_symbols, has_debug; /* as the parser found */
	uint64_t symbols_named, symbols_out; /* frames by outcome */
	void *namer_slot;        /* the namer's own */
	UT_hash_handle hh;
};

/* Outcome of naming one frame. Stored: do not renumber. */
enum frame_state {
	FRAME_NEW = 0,
	FRAME_ASKED = 1,
	FRAME_NAMED = 2,         /* inside a sized symbol, or a JIT entry */
	FRAME_OUT_OF_SYMBOL = 3, /* file has symbols, none covers the address */
	FRAME_UNNAMED = 4,       /* file has no symbols, or could not be read: see its state */
};

/* One (function, file, line) of a frame; place 0 is the innermost inlined function, the last is
 * the symbol itself. */
struct place {
	const char *function;    /* demangled; NULL unknown; interned by the namer client, borrowed */
	const char *source;      /* path; NULL unknown; interned */
	uint32_t line;           /* 0 unknown */
	bool inlined;
};

struct frame {
	uint32_t id;             /* from 1; key in the store */
	enum frame_state state;
	struct file *file;
	uint64_t offset;
	struct place *place;     /* n_places, owned */
	uint16_t n_places;
	uint8_t asker;           /* the namer's own: whose turn names it */
	uint32_t age;            /* of the table when it was last asked for */
	UT_hash_handle hh;
};

struct file_table {
	struct file *by_key;     /* uthash */
	struct frame *frames;    /* uthash over (file id, offset) */
	uint32_t n_files, n_frames; /* the highest ids */
	struct file **file;      /* by id - 1; NULL: freed by a sweep */
	struct frame **frame;    /* by id - 1; NULL: likewise */
	size_t size_file, size_frame;
	uint32_t *free_file, *free_frame; /* ids below n_files, n_frames, the next to be given last */
	uint32_t n_free_files, n_free_frames;
	uint32_t age;            /* counts up as time passes, to tell what is idle */
	uint64_t aged_ns;        /* CLOCK_MONOTONIC of the last time */
	uint64_t n_refused;      /* for want of room */
};

/* What a mapping says of its file. */
struct file_key {
	enum file_kind kind;
	const char *path;
	const uint8_t *build_id;
	uint8_t n_build_id;
	uint32_t major, minor;
	uint64_t inode;
	uint64_t generation;     /* as in struct file; 0: unknown, which fits any */
	uid_t uid;               /* of the process; part of the key of ELF files */
	pid_t pid;               /* part of the key only for kinds that belong to one process */
	uint64_t pid_start_ns;
};

/* Find or add. 0, FILE_TABLE_FULL, -ENOMEM. */
enum { FILE_TABLE_FULL = 1 };
int file_get(struct file_table *t, const struct file_key *key, struct file **ret_file);
/* The same file as a process of that user has it; itself where it is no ELF file or that user's. The
 * process to open it through is for the caller to set. 0, FILE_TABLE_FULL, -ENOMEM. */
int file_of_user(struct file_table *t, struct file *file, uid_t uid, struct file **ret_file);
int frame_get(struct file_table *t, struct file *file, uint64_t offset, struct frame **ret_frame);

/* Free all frames, and all files, but those of mark[id - 1] == SWEEP_KEPT (sweep.h); the files of
 * frames that are kept must be too, and no file that goes may have a slot at the namer. The ids of
 * the rest are given again unless SWEEP_RESERVED. 0; -ENOMEM: nothing was freed. */
int file_table_sweep(struct file_table *t, const uint8_t *frame_mark, const uint8_t *file_mark);

void file_table_clear(struct file_table *t);
