/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roofs: the measured maximum rates of a machine
 *
 * A roof is a rate that no loop exceeds: operations per second of one precision, or bytes per
 * second of one level of memory. Each has the kind of hart and the scope for which it was measured,
 * and an interval. mperf-roofs writes roofs as JSON; mperfctl reads them, and the service, which
 * stores those of its machine. A file may come from anybody, so the reader checks every value.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits of a file; beyond them it is refused. A machine of three kinds of hart has about 600 roofs
 * in 150 KB. */
#define ROOFS_MAX 8192
#define ROOFS_BYTES_MAX (8u << 20)
#define ROOFS_KINDS_MAX 64
#define ROOFS_NOTES_MAX 64
/* Bytes of roofs that the service stores and sends to all users: they come in one frame, and the
 * daemon parses them. Enough for 1,400 roofs, written without indentation. */
#define ROOFS_SHARED_BYTES_MAX (384u << 10)
#define ROOF_WORD_BYTES 16  /* "f64", "avx512", "L1": longer words are refused */
#define ROOF_TEXT_BYTES 128 /* names and lists of harts */
#define ROOF_NOTE_BYTES 256
#define ROOFS_VERSION 1

enum {
	ROOFS_MALFORMED = 1, /* not a file of roofs; the fault is named */
	ROOFS_NEWER,         /* a version that we do not know */
	ROOFS_NONE,          /* nothing was measured here */
};

/* Keeper of the roofs; set by the code that finds them, not stored. */
enum roofs_keeper {
	ROOFS_OF_FILE, /* roofs that the user named, or measured now */
	ROOFS_OF_USER, /* in the user's state folder */
	ROOFS_OF_SERVICE,
};

enum roof_limit {
	ROOF_COMPUTE, /* operations per second */
	ROOF_MEMORY,  /* bytes per second, as the core asks for them */
};

/* The number of harts that ran together. */
enum roof_scope {
	ROOF_HART,    /* one */
	ROOF_CLUSTER, /* all of one cluster */
	ROOF_KIND,    /* all of one kind */
	ROOF_MACHINE, /* all of the machine, where it has several kinds; `kind` is "all" */
};

struct roof {
	enum roof_limit limit;
	enum roof_scope scope;
	char kind[ROOF_TEXT_BYTES]; /* of the harts: the id of a struct roofs_kind, or "all" */
	uint32_t n_harts;           /* harts that ran together; one of each core */

	/* ROOF_COMPUTE */
	char precision[ROOF_WORD_BYTES]; /* f64 f32 f16 i64 i32 i16 i8 */
	char operation[ROOF_WORD_BYTES]; /* add mul mul+add; fma mac: fused, each counts two */

	/* ROOF_MEMORY */
	char level[ROOF_WORD_BYTES];   /* L1 L2 … DRAM */
	char pattern[ROOF_WORD_BYTES]; /* load store copy 2:1 triad, nt-store nt-copy nt-triad */
	uint64_t bytes;                /* working set of each hart */

	char unit[ROOF_WORD_BYTES]; /* of the core: scalar sse2 avx2 avx512 neon sve rvv */
	uint32_t lmul;              /* rvv: registers per group; else 0 */

	/* Per second: operations or bytes. */
	double value, low, high;
	double hz; /* frequency of the harts meanwhile, from a chain of additions; 0: unknown */
	uint32_t repeats;
	char note[ROOF_NOTE_BYTES]; /* "throttled …", "disturbed …"; empty: none */
};

struct roofs_kind {
	char id[ROOF_TEXT_BYTES];    /* "x86-GenuineIntel-6-207", "arm-0x41-0xd0c" */
	char name[ROOF_TEXT_BYTES];  /* for people */
	char harts[ROOF_TEXT_BYTES]; /* "0-3,8" */
};

struct roofs {
	/* machine that they were measured on */
	char machine[ROOF_TEXT_BYTES]; /* derived from machine-id(5), not the id itself */
	char kernel[ROOF_TEXT_BYTES];  /* uname -r */
	char architecture[ROOF_WORD_BYTES];
	struct roofs_kind *kinds;
	size_t n_kinds;

	int64_t measured_s; /* CLOCK_REALTIME of the end, in seconds */
	double took_s;
	bool quick;  /* fewer roofs, fewer repeats */
	bool paused; /* the service lowered its sampling meanwhile (mperfd(8)) */
	/* Disturbance of the run, which may make all of its roofs low; "": none was noticed. Files
	 * of older versions do not have it. */
	char disturbed[ROOF_NOTE_BYTES];

	struct roof *roof;
	size_t n;
	char (*note)[ROOF_NOTE_BYTES]; /* on the whole measurement */
	size_t n_notes;

	enum roofs_keeper keeper;
	/* Set by roofs_compare, not stored: the roofs are of another machine or kernel. Show them
	 * only with `why`, and compare nothing with them unless asked to. */
	bool stale;
	char why[ROOF_NOTE_BYTES];
};

/* Parse `n` bytes of JSON. On success the caller frees with roofs_clear. 0; ROOFS_MALFORMED and
 * ROOFS_NEWER, with the fault written to `fault`; -ENOMEM. */
int roofs_parse(
	const char *text, size_t n, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES]);

/* Read a file, as roofs_parse does; also -errno of reading it. */
int roofs_read(const char *path, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES]);

/* Write JSON that roofs_parse reads; `compact` for programs, else for people. 0, -ENOMEM, -EIO. */
int roofs_write(const struct roofs *r, bool compact, FILE *f);
/* The same into memory; the caller frees *ret_text. */
int roofs_text(const struct roofs *r, bool compact, char **ret_text, size_t *ret_n);

/* The highest roof that matches these words; NULL as a word means any. Returns NULL if none was
 * measured. O(r->n). */
struct roof_wanted {
	enum roof_limit limit;
	enum roof_scope scope;
	const char *kind;                         /* id of the harts' kind */
	const char *precision, *operation, *unit; /* ROOF_COMPUTE; unit also ROOF_MEMORY */
	const char *level, *pattern;              /* ROOF_MEMORY */
};
const struct roof *roofs_highest(const struct roofs *r, const struct roof_wanted *wanted);

/* "hart", "cluster", "kind", "machine". Static. */
const char *roof_scope_name(enum roof_scope scope);

/* The name of the file that stores them, from machine, kernel and kinds of harts, without a folder:
 * always hexadecimal digits, and the same in all processes. 0, -ENOMEM. */
#define ROOFS_NAME_BYTES 40
int roofs_name(const struct roofs *r, char ret_name[static ROOFS_NAME_BYTES]);

/* Id of this machine, as in roofs.machine: a hash of machine-id(5), which itself must not leave the
 * machine. */
void roofs_machine(char ret_id[static ROOF_TEXT_BYTES]);

/* Free what it owns. */
void roofs_clear(struct roofs *r);
