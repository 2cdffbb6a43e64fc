/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The platform database: facts about cores that the kernel does not provide
 *
 * A platform is one kind of core: its events by name and topic, the raw codes of the kernel's
 * generic events, and its quirks. A database is read from folders, the later ones overriding the
 * earlier ones; the grammar of the files is in README.md next to this header. A platform is found
 * by a hart's identity, which callers read.
 *
 * Everything returned belongs to the database and is valid as long as it exists.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/memory.h"

struct expression;
struct expression_source;

#define PLATFORM_FOLDER_OVERRIDES "/etc/mperf/platforms.d"

#define PLATFORM_EVENTS_MAX 8192  /* of one platform; Intel's largest core list has about 3,000 */
#define PLATFORM_METRICS_MAX 1024 /* of one platform; Intel's largest core has about 400 */
#define PLATFORM_GROUPS_MAX 16    /* groups of one metric */
#define PLATFORM_ERRORS_MAX 64    /* kept errors; further ones are counted */
#define PLATFORM_CACHES_MAX 8 /* first level split in two, and more levels than any machine has */
#define PLATFORM_PEAKS_MAX 16 /* precision times unit */
/* ranges of event codes under one kind of quirk; counter banks are few */
#define PLATFORM_RANGES_MAX 32
#define PLATFORM_FIELDS_MAX 32 /* of raw codes; a field has a bit at least, and selectors a dozen */
#define PLATFORM_PMU_BYTES 24  /* of a PMU of cores: "cpu_lowpower" is the longest */
#define PLATFORM_COMPATIBLE_BYTES 512 /* of a device tree's root; a few "vendor,board" names */

/* --- identity of a hart ---------------------------------------------------------------------------- */

enum platform_arch {
	PLATFORM_ARCH_UNKNOWN,
	PLATFORM_ARCH_RISCV,
	PLATFORM_ARCH_ARM64,
	PLATFORM_ARCH_X86,
};
/* Names in files, from PLATFORM_ARCH_RISCV on; NULL-terminated. */
extern const char *const platform_arch_names[];

struct platform_identity {
	enum platform_arch arch;
	bool read; /* the registers below were read; otherwise they are 0 */
	uint64_t mvendorid, marchid, mimpid; /* RISC-V */
	uint64_t midr;                       /* Arm: MIDR_EL1 */
	char vendor[16];                     /* x86: cpuid's twelve letters, "GenuineIntel" */
	uint32_t family, model, stepping;    /* x86: with the extended parts added in */
	/* x86, where harts are of several kinds: the PMU of this one, "cpu_atom"; "" otherwise */
	char pmu[PLATFORM_PMU_BYTES];
	char compatible[PLATFORM_COMPATIBLE_BYTES]; /* root of the device tree, by blanks; ""
						       without */
};

/* Write the identity in readable form, "riscv 0x710/0x8000000058000001/0x1000000049772200", "arm64
 * 0x411fd0c1", "x86 GenuineIntel-6-85-4", "x86 GenuineIntel-6-97-2 cpu_atom", or "unknown". Returns buffer. */
const char *platform_identity_says(const struct platform_identity *id, char *buffer, size_t size);

/* --- what a platform is ----------------------------------------------------------------------- */

/* Privilege modes in which events can be counted, as bits. */
enum {
	PLATFORM_MODE_USER = 1u << 0,
	PLATFORM_MODE_KERNEL = 1u << 1,  /* S on RISC-V, EL1 on Arm */
	PLATFORM_MODE_MACHINE = 1u << 2, /* M on RISC-V, EL3 on Arm */
	PLATFORM_MODES_ALL = 7,
};

enum platform_overflow {
	PLATFORM_OVERFLOW_UNKNOWN, /* not stated: probe */
	PLATFORM_OVERFLOW_ALL,     /* every counter interrupts */
	/* all but the fixed cycle and instruction counters interrupt */
	PLATFORM_OVERFLOW_PROGRAMMABLE,
	PLATFORM_OVERFLOW_NONE, /* no counter does: hardware events cannot sample */
};

/* The source of a statement, and whether it was verified on a machine. */
struct platform_origin {
	const char *source;   /* manual, kernel file with version, … */
	const char *verified; /* machine, kernel and date, or "no" */
	const char *file;     /* file of ours, */
	int line;             /* and the line in it */
};

struct platform_event {
	const char *name;
	const char *topic;          /* "cycles", "branch", "memory", …; the data's own words */
	const char *says;           /* a description of one line, or "" if unknown */
	const char *const *aliases; /* n_aliases other names */
	size_t n_aliases;
	uint64_t code;     /* perf_event_attr.config of PERF_TYPE_RAW */
	uint64_t config1;  /* of a second register: x86's offcore_rsp, ldlat, frontend; mostly 0 */
	uint64_t counters; /* bit n: hardware counter n can count it; 0: not known */
	bool ignores_exclude_kernel; /* by a mode-filter erratum: always counts all modes */
	struct platform_origin origin;
};

/* A figure made of counts by a formula. */
struct platform_metric {
	const char *name;
	const char *says;         /* a description of one line, or "" if unknown */
	const char *const *group; /* n_groups names */
	size_t n_groups;
	/* n_kept_groups groups of our metric that this third party's formula replaced */
	const char *const *kept_group;
	size_t n_kept_groups;
	const char *const *next; /* n_next groups or metrics to measure next if this one is large */
	size_t n_next;
	const char *text;                    /* of the formula, as in the file */
	const struct expression *expression; /* see expression.h; names may be other metrics */
	double scale;                        /* the value is multiplied by it, */
	const char *unit;                    /* and is in this unit: "%", "per_instr", … or "" */
	bool third_party; /* its names may be of events that the platform does not have */
	const char *pmu;  /* a third party's, only for harts with that core PMU; NULL: for all */
	struct platform_origin origin;
};

/* A generic event of the kernel (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE) and the raw event that
 * counts it. */
struct platform_generic {
	uint32_t type;
	uint64_t config;
	const struct platform_event *event;
};

/* A rule on event codes first … last, both included. */
struct platform_range {
	uint64_t first, last;
	uint64_t counters; /* of a counter rule: those that can count them, */
	int offset;        /* or, where counters is 0: event N on counter N + offset alone */
	const char *says;  /* of an erratum: the sentence for the reader of the answer */
	struct platform_origin origin;
};

/* A field of the core's raw codes: the bits of its event selector that have a meaning of their own. */
enum platform_field_kind {
	PLATFORM_FIELD_NUMBER,
	PLATFORM_FIELD_EVENT, /* an event's code, of one bank of counters */
	PLATFORM_FIELD_SET,   /* a bit for each of the events whose other bits are the same */
	/* the operation on the results of two fields; its values have names */
	PLATFORM_FIELD_OPERATION,
	PLATFORM_FIELD_INHIBIT, /* modes that are not counted: the kernel sets these bits itself */
};

struct platform_field_value {
	const char *name; /* "ADD" */
	uint64_t number;
};

struct platform_field {
	const char *name;
	enum platform_field_kind kind;
	uint64_t mask;    /* its bits in the code; the lowest is the field's lowest */
	const char *says; /* or "" */
	const struct platform_field_value *value; /* n_values that have names */
	size_t n_values;
	int joins[2]; /* of an operation: positions of fields before it, events or operations */
	struct platform_origin origin;
};

struct platform_cache {
	int level; /* 1 … */
	char kind; /* 'd' data, 'i' instructions, 'u' unified */
	uint64_t bytes;
	uint32_t line_bytes; /* 0: not known */
	uint32_t shared_by;  /* harts that share one; 0: not known */
	struct platform_origin origin;
};

/* The theoretical peak of one hart per cycle. */
struct platform_peak {
	const char *precision; /* "fp64", "fp32", "fp16", "int8", … */
	const char *unit;      /* "scalar" or "vector" */
	double ops_per_cycle;  /* a fused multiply-add is two */
	struct platform_origin origin;
};

/* A metric that other cores have and this one cannot have. */
struct platform_lack {
	const char *metric;
	const char *says; /* the missing event: "no event counts floating-point operations" */
	struct platform_origin origin;
};

/* A statement for readers: errata and limits, as sentences. */
struct platform_note {
	const char *says;
	struct platform_origin origin;
};

struct platform {
	const char *name;  /* "spacemit-x60" */
	const char *title; /* "SpacemiT X60" */
	enum platform_arch arch;
	bool generic; /* this core is not described: see platform_unknown_says */
	struct platform_origin origin;

	const struct platform_event *event; /* n_events, by topic, then in the order of the file */
	size_t n_events;
	const struct platform_generic *generics; /* n_generics */
	size_t n_generics;
	const struct platform_metric *metric; /* n_metrics, in the order of the files */
	size_t n_metrics;

	/* Quirks. Unstated values are NULL, 0 or _UNKNOWN. */
	enum platform_overflow overflow;
	/* The events that sample if cycles cannot: leaders by profiled mode. */
	const struct platform_event *leader_user, *leader_kernel, *leader_machine;
	bool fixed_unfiltered; /* the fixed cycle and instruction counters count every mode */
	uint64_t counters;     /* programmable counters, as a mask; 0: not known */
	const struct platform_range *counter_rule; /* the first that contains a code wins */
	size_t n_counter_rules;
	const struct platform_range *unfiltered; /* codes that ignore exclude_kernel */
	size_t n_unfiltered;
	/* prefix that names fields, "xs" of xs/frontend/…/; "" if there is none */
	const char *selector;
	const struct platform_field
		*field; /* n_fields of raw codes; selector.h reads and writes them */
	size_t n_fields;
	uint32_t vector_bits;               /* width of a vector register; 0: none or not known */
	const char *vector_says;            /* "RVV 1.0" */
	uint32_t issue_width;               /* maximum instructions issued per cycle */
	uint32_t slots;                     /* per cycle, for top-down */
	const struct platform_cache *cache; /* n_caches */
	size_t n_caches;
	const struct platform_peak *peak; /* n_peaks */
	size_t n_peaks;
	const struct platform_lack *lack; /* n_lacks */
	size_t n_lacks;
	const struct platform_note *note; /* n_notes: every erratum, for doctor and annotate */
	size_t n_notes;
};

/* --- the database ----------------------------------------------------------------------------- */

struct platform_db;

/* Find the folder of mperf's own data: next to the running program (a build), relative to an
 * installed program, or the configured path. 0 or -ENAMETOOLONG. */
int platform_folder_find(char *ret_path, size_t size);

/* Read folders[0 … n), each overriding those before it. A missing folder is an error only if it is
 * the first. A file with an error is left out as a whole and named in the errors; other files are
 * not affected. Takes a few ms per megabyte of data. 0; -ENOMEM. */
int platform_db_load(const char *const *folders, size_t n, struct platform_db **ret_db);
/* Add a reference, to be freed like the first; the last one frees the data. For use by one thread. db
 * may be NULL. */
struct platform_db *platform_db_ref(struct platform_db *db);
struct platform_db *platform_db_free(struct platform_db *db);
DEFINE_CLEANUP(struct platform_db *, platform_db_free)

/* The errors, "/etc/mperf/platforms.d/x.json:12: a sentence"; NULL after the last. */
const char *platform_db_error(const struct platform_db *db, size_t i);

/* All platforms, ours and then those of third-party folders alone; NULL after the last. Third-party
 * platforms are built when they are first requested, hence db is not const. */
const struct platform *platform_db_at(struct platform_db *db, size_t i);
/* Find a platform by name: for third-party ones, the folder's name in their map, or
 * "alderlake:cpu_atom" for harts with that PMU; ours come first. NULL if there is none. */
const struct platform *platform_db_find(struct platform_db *db, const char *name);

/* The platform of that hart. Never NULL: for an undescribed core it is its architecture's generic
 * one, and without any data an empty one; both have generic set. The first lookup of an identity
 * may build a platform from several files, hence db is not const; all lookups of it return the same
 * pointer. */
const struct platform *platform_match(struct platform_db *db, const struct platform_identity *id);

/* For a hart with a generic platform: one line on what to do. Returns buffer. */
const char *platform_unknown_says(const struct platform_identity *id, char *buffer, size_t size);

/* --- asking a platform ------------------------------------------------------------------------ */

/* By name or alias, ignoring case. NULL if there is none. O(n_events). */
const struct platform_event *platform_event_find(const struct platform *p, const char *name);

/* By name, ignoring case. NULL if there is none. O(n_metrics). */
const struct platform_metric *platform_metric_find(const struct platform *p, const char *name);

/* The reason why it cannot have a metric of that name, ignoring case, from struct platform_lack; NULL: not
 * known. O(n_lacks). */
const char *platform_lacks(const struct platform *p, const char *name);

/* Is the metric in that group, ignoring case? */
bool platform_metric_is_in(const struct platform_metric *m, const char *group);

/* The value of a metric, scaled, from the counts of one stretch of time (expression.h; names there
 * are of events, constants of the machine). Other metrics and constants of the platform are found
 * here. 0; EXPRESSION_MISSING with the name of the event without a count; EXPRESSION_UNDEFINED, a
 * division by zero, with the metric's name. */
int platform_metric_value(const struct platform *p, const struct platform_metric *m,
	const struct expression_source *counts, double *ret_value, const char **ret_missing);

/* "slots", "issue_width", "vector_bits", "cache_line", ignoring case. 0, EXPRESSION_MISSING. */
int platform_constant(const struct platform *p, const char *name, double *ret_value);

/* The raw event that counts the kernel's generic event (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE)
 * here, for kernels whose driver does not map it (ENOENT). NULL if none is known. */
const struct platform_event *platform_event_generic(
	const struct platform *p, uint32_t type, uint64_t config);

/* The platform's own event for cycles in every mode, or NULL. */
const struct platform_event *platform_all_modes(const struct platform *p);

/* The generic event of this architecture-specific name, as perf list spells it, ignoring case; the
 * architecture is returned: riscv_cycles is cycles. _UNKNOWN, with *ret_generic untouched, for any other
 * name. */
enum platform_arch platform_generic_name(const char *name, const char **ret_generic);

/* Counters that can count this raw code, as a mask; 0 if not known. */
uint64_t platform_counters(const struct platform *p, uint64_t code);

/* The erratum by which this raw code always counts all modes, or NULL. */
const struct platform_range *platform_unfiltered(const struct platform *p, uint64_t code);

/* The leader of a sampling group if cycles cannot sample, for the profiled modes (a set of
 * PLATFORM_MODE_*): the leader of the least privileged mode in it, since most time is spent there.
 * NULL if there is none, or if the core needs none. */
const struct platform_event *platform_leader(const struct platform *p, unsigned modes);
