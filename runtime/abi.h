/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The contract of pass, runtime and daemon: sections of a program, and messages on the feed
 *
 * For each compilation unit (module) the pass makes an array of 64-bit counters in the section
 * mperf_counters, a table of their meanings, and a struct mperf_module in mperf_modules. The linker
 * joins the sections of one executable or shared library (object), so an object has one block of
 * counters, and its struct mperf_object has the bounds of all sections.
 *
 *      mperf_counters of an object:  [module 0][module 1]…        never counted in
 *      a thread's block, per region: [module 0][module 1]…        at the distance of __mperf_bias
 *
 * A thread counts in a block of its own: code adds __mperf_bias (thread-local, one per object) to a
 * counter's address, or uses it as a segment base (MPERF_MODULE_SEGMENT). The bias is 0 until the
 * thread's first counted function calls __mperf_thread_enter to get a block. Entering a region sets
 * the bias to a block of that region, so all callees, called directly or by pointer, count for the
 * region, without clones.
 *
 * A counter alone has no meaning: the table gives the signed factors by which it adds to metrics of
 * scopes. With a spanning tree, a block's count is a signed sum of counters, which is exact when no
 * function is running; a read in between is off by one path through each running function, and a
 * difference may be negative by that much.
 */

#include <stdint.h>

#include "runtime/mperf.h" /* regions; the pass also makes calls of these from comments */

#define MPERF_ABI_VERSION 1
#define MPERF_FEED_MAGIC 0x4652504du /* "MPRF" */
/* Versions of the feed, in HELLO. A daemon understands all versions up to its own, and refuses
 * others by FEED_VERSION. Files are written in version 1, since no daemon answers there. A program
 * announces the lowest version that has all messages it sends, so that an older daemon accepts it.
 * */
#define MPERF_FEED_UNASKED 1u    /* tables follow OBJECT at once */
#define MPERF_FEED_ON_REQUEST 2u /* the daemon answers OBJECT with WANT */
#define MPERF_FEED_PLACES 3u     /* of the OpenMP tool: PLACE and TALLY */
#define MPERF_FEED_VERSION MPERF_FEED_PLACES
/* Bytes of SPENT without the members for regions of which 1 in N entries is measured. Readers that
 * know both sizes accept both, in any version. */
#define MPERF_SPENT_SHORT_BYTES 104u
/* Unit of variances: 1024 units of the value, squared; so a standard error up to 3 * 10^12 fits.
 * The variance of each thread in each region is rounded up to this unit: it is 0 only if no error
 * was seen. */
#define MPERF_VARIANCE_UNIT 1048576.0
#define MPERF_FEED_SOCKET "/run/mperf/feed.sock"

/* The largest packet, so that it fits any socket's buffer. Source: Linux 6.12, net/core/sock.c,
 * SK_WMEM_MAX: 212,992 bytes including the kernel's overhead. */
#define MPERF_PACKET_BYTES_MAX (32u << 10)
#define MPERF_PERIOD_MS_MIN 10u
#define MPERF_PERIOD_MS 1000u
#define MPERF_PERIOD_MS_MAX 60000u
#define MPERF_GRANTS_MAX 4u
#define MPERF_BUILD_ID_BYTES_MAX 64u

enum mperf_metric {
#define MPERF_METRIC(id, symbol, name, unit, says) MPERF_METRIC_##symbol = (id),
#include "abi.inc"
};

/* How to use a factor; added to a metric's id shifted by MPERF_VARIANT_BITS. */
enum mperf_variant {
	MPERF_SCALABLE = 1, /* times vscale, which is known only at run time */
	MPERF_MODELLED = 2, /* assumed for a library call or the code generator, not seen in the
			     * code */
};
#define MPERF_VARIANT_BITS 2

enum mperf_scope_kind {
	/* as in the store's loop_site.kind; a region has no scope in a table */
	MPERF_SCOPE_LOOP = 1,
	MPERF_SCOPE_FUNCTION = 2,
	MPERF_SCOPE_BLOCK = 4,
	/* A called function that the module does not count: its entries are the calls. For copies
	 * and fills by the C library, also the bytes that they move. From version 2. */
	MPERF_SCOPE_CALLEE = 5,
};

/* The table of a module. Numbers are LEB128, unsigned but for factors, which are signed.
 *
 *      table   = 2 (its version)
 *                n_runs { use n }                        of counters, which the runtime needs
 *                packing n_bytes body                    n_bytes: of the body, unpacked
 *      body    = n_strings { n_bytes bytes }             string 0 is the empty one
 *                n_defined { hash }                      of 8 bytes, little endian
 *                n_scopes  { kind parent function source line line_last column nest
 *                            inlined_at flags }
 *                n_counters { n_terms { scope metric factor } }
 *
 * use is of enum mperf_counter_use; the n of all runs add up to n_counters. packing is of enum
 * mperf_packing, and the packed body ends with the table. hash is mperf_name_hash of the linkage
 * name of a function that the module defines and other modules may call.
 *
 * parent is the number of an earlier scope, plus 1; 0: none. A loop's parent is the loop around it
 * or its function; a block's is its innermost loop or function, and a callee's where it is called.
 * function, source, nest and inlined_at are numbers of strings: the linkage name, the path as passed
 * to the compiler, the ordinals of the loop from the outermost inwards ("1.2"; by order of
 * appearance), the chain "path:line path:line", innermost first. line 0: unknown; a callee's lines
 * are those of its first and last call. metric is id << 2 | variant.
 *
 * A loop's terms exclude those of the loops and callees inside; a function's exclude its loops. A
 * reader sums them up for totals. flags: enum mperf_scope_flag.
 *
 * Version 1, which readers still accept, has the parts of the body directly after the version,
 * without n_defined and packing, and in each counter its kind (enum mperf_counter_kind) before
 * n_terms.
 */
#define MPERF_TABLE_VERSION 2
#define MPERF_TABLE_VERSION_FIRST 1

enum mperf_packing {
	MPERF_PACKING_NONE = 0,
	MPERF_PACKING_ZLIB = 1, /* Source: RFC 1950. */
};
/* The largest ratio of a body to its packed form, so that a short table cannot make a reader
 * allocate much. For SQLite and Lua the ratio is three. */
#define MPERF_PACKING_RATIO_MAX 16u

enum mperf_counter_use {
	MPERF_USE_NONE, /* state, or unused: not sent, no terms */
	MPERF_USE_SUM,
	MPERF_USE_TIME, /* a timed loop's MPERF_TIMED_NS, with its other words before it */
};

/* FNV-1a of 64 bits. Source: RFC 9923. */
static inline uint64_t mperf_name_hash(const char *name, uint64_t bytes)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (uint64_t i = 0; i < bytes; i++)
		hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
	return hash;
}

enum mperf_scope_flag {
	/* a copy made by the vectoriser; same function, line, nest as the other copies */
	MPERF_SCOPE_VECTORISED = 1,
	MPERF_SCOPE_REMAINDER = 2,
	MPERF_SCOPE_ASSEMBLY = 4, /* contains inline assembly, which is not counted */
	MPERF_SCOPE_NO_LINES = 8, /* the pass had no source lines */
	MPERF_SCOPE_CLONED = 16,  /* a function in two bodies, or an outermost loop of one: entries
				   * are of both bodies; all other counts except time, including
				   * inner scopes, are of counted entries only. A reader multiplies
				   * them by entries over counted entries of the innermost
				   * enclosing scope that has this flag. */
	MPERF_SCOPE_HOISTED = 32, /* an outermost loop; its counts for an entry, or its inner loops'
				   * counts for one of its iterations, are added at once, before or
				   * after that ran. */
};

enum mperf_counter_kind {
	MPERF_COUNTER_SUM = 0,
	MPERF_COUNTER_STATE = 1, /* a word of the runtime; not sent, no terms */
};

/* Words of a timed outermost loop, among the counters. The last two have terms. */
enum {
	/* State: entries left until one is timed. Each entry subtracts 1; if that leaves less than
	 * 1 (signed; so the first time) it is timed, and __mperf_loop_begin sets it again. */
	MPERF_TIMED_COUNTDOWN,
	/* State, only the runtime's: start of the timed entry, or its window in between
	 * (timed_loop.h). */
	MPERF_TIMED_OPEN_NS,
	MPERF_TIMED_ENTRIES,
	/* Time of all entries: the runtime has weighted each timed entry by the entries that it
	 * represents, so readers must not scale it by entries over timed entries. */
	MPERF_TIMED_NS,
	MPERF_TIMED_WORDS,
};

/* Words of a function in two bodies, among the counters: only the runtime's, all state. */
enum {
	/* Entries left until one is counted, for 1 in N: each subtracts 1. If that leaves less than
	 * 1 (signed; so the first time), __mperf_turn_draw says whether this one counts. */
	MPERF_TURN_COUNTDOWN,
	MPERF_TURN_WINDOW, /* the runtime's state in between */
	MPERF_TURN_WORDS,
};

/* --- what the pass makes ---------------------------------------------------------------------- */

enum mperf_module_flag {
	MPERF_MODULE_TREE = 1,
	MPERF_MODULE_BLOCK = 2,
	MPERF_MODULE_SETS = 4,
	MPERF_MODULE_CLONE = 8,
	/* Set the bias as the base of the segment %gs too (x86-64, one object per process). */
	MPERF_MODULE_SEGMENT = 16,
};

struct mperf_module {
	uint32_t abi; /* MPERF_ABI_VERSION */
	uint32_t flags;
	/* in mperf_counters; its offset there is the module's offset in each block */
	uint64_t *counters;
	uint64_t n_counters;
	const uint8_t *table;
	uint64_t table_bytes;
};

/* An executable or shared library. Each has one of these; hidden, merged by the linker. */
struct mperf_object {
	uint32_t abi;
	uint32_t id;                        /* the runtime's */
	const struct mperf_module *modules; /* __start_mperf_modules */
	const struct mperf_module *modules_end;
	uint64_t *counters; /* __start_mperf_counters */
	uint64_t *counters_end;
	int64_t *(*bias)(void); /* where the calling thread's __mperf_bias is */
	const void *elf;        /* __ehdr_start, for the build id */
	void *runtime;          /* the runtime's */
};

/* A function in two bodies. Each has one of these, in the section mperf_choices. Each entry reads
 * one_in; the runtime may write it at any time. */
struct mperf_choice {
	int32_t one_in; /* below 0, as the pass sets it: count each entry; 0: none; N >= 2: 1 in
			 * N */
	uint32_t reserved;
	const char *names; /* of the function, and of those whose loops were inlined; each ends
			    * with NUL, the last with two */
};

/* --- what compiled code calls ----------------------------------------------------------------- */

#ifdef __cplusplus
extern "C" {
#endif

/* Called by a constructor of priority 1, and by the destructor of a library when it is closed.
 * Repeated calls have no effect. */
void __mperf_object_register(struct mperf_object *o);
void __mperf_object_unregister(struct mperf_object *o);

/* Give the calling thread a block for that object, if its __mperf_bias is 0. Returns the bias;
 * without memory, the bias of a block that is never read. It is 0 only if the object is not
 * registered, or no longer: counts then go into the object's own words. Async-signal-safe, except
 * in a library opened by dlopen without static TLS (dynamic-tls=1): there the C library may
 * allocate at a thread's first access. Preserves errno. Like all of these functions, it has the
 * plain C calling convention. */
int64_t __mperf_thread_enter(struct mperf_object *o);

/* Time an entry into an outermost loop: words are its MPERF_TIMED_WORDS in the thread's block.
 * `published`: no exception leaves the loop past its end, so a reader may see the time of a running
 * entry. The pass calls begin when the countdown expires, and calls end if begin returned non-zero.
 * */
uint64_t __mperf_loop_begin(uint64_t *words, uint32_t published);
void __mperf_loop_end(uint64_t *words, uint64_t begin_ns);

/* The same for the choices of an object; first and end are the bounds of its section. */
void __mperf_choices_register(struct mperf_choice *first, struct mperf_choice *end);
void __mperf_choices_unregister(struct mperf_choice *first, struct mperf_choice *end);

/* Does this entry count? Called when a countdown expires: words are the function's MPERF_TURN_WORDS
 * in the thread's block. Async-signal-safe. */
uint32_t __mperf_turn_draw(uint64_t *words, int32_t one_in);

#ifdef __cplusplus
}
#endif

/* --- the feed --------------------------------------------------------------------------------- */

enum mperf_message {
	MPERF_HELLO = 1,
	MPERF_OBJECT,
	MPERF_TABLE,
	MPERF_REGION,
	MPERF_THREAD,
	MPERF_DELTAS,
	MPERF_SPENT,
	MPERF_GONE,
	MPERF_ROUND,
	MPERF_PLACE,
	MPERF_TALLY,
	MPERF_ASK = 64,
	MPERF_GRANT,
	MPERF_SELECT,
	MPERF_WANT,
};

enum mperf_gone { MPERF_GONE_THREAD = 1, MPERF_GONE_OBJECT = 2 };

enum mperf_place_kind {
	MPERF_PLACE_PARALLEL = 1,
	/* constructs that divide a region's work among its threads */
	MPERF_PLACE_LOOP,
	MPERF_PLACE_SECTIONS,
	MPERF_PLACE_SINGLE,
	MPERF_PLACE_WORKSHARE, /* any other */
	/* where its threads wait for each other, or for tasks; time_ns is the wait */
	MPERF_PLACE_BARRIER,
	MPERF_PLACE_BARRIER_OF_WORK,   /* at the end of a loop and the like */
	MPERF_PLACE_BARRIER_OF_REGION, /* at the region's end, which has no address */
	MPERF_PLACE_TASKWAIT,
	MPERF_PLACE_TASKGROUP,
	/* where they wait for exclusive access; time_ns is the wait */
	MPERF_PLACE_LOCK,
	MPERF_PLACE_CRITICAL,
	MPERF_PLACE_ATOMIC,
	MPERF_PLACE_ORDERED,
	MPERF_PLACE_KINDS, /* how many, with 0 */
};

struct mperf_delta {
	uint32_t counter; /* of the object's block */
	uint32_t reserved;
	uint64_t delta; /* modulo 2^64; sums by factors are signed */
};

/* Made of abi.inc, which documents their members. */
struct mperf_feed_head {
#define MPERF_HEAD_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_hello {
	struct mperf_feed_head head;
#define MPERF_HELLO_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_object {
	struct mperf_feed_head head;
#define MPERF_OBJECT_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_table {
	struct mperf_feed_head head;
#define MPERF_TABLE_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_region {
	struct mperf_feed_head head;
#define MPERF_REGION_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_thread {
	struct mperf_feed_head head;
#define MPERF_THREAD_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_deltas {
	struct mperf_feed_head head;
#define MPERF_DELTAS_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_spent {
	struct mperf_feed_head head;
#define MPERF_SPENT_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_place {
	struct mperf_feed_head head;
#define MPERF_PLACE_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_tally {
	struct mperf_feed_head head;
#define MPERF_TALLY_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_gone {
	struct mperf_feed_head head;
#define MPERF_GONE_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_round {
	struct mperf_feed_head head;
#define MPERF_ROUND_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_ask {
	struct mperf_feed_head head;
#define MPERF_ASK_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_grant {
	struct mperf_feed_head head;
#define MPERF_GRANT_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_select {
	struct mperf_feed_head head;
#define MPERF_SELECT_FIELD(type, name) type name;
#include "abi.inc"
};
struct mperf_feed_want {
	struct mperf_feed_head head;
#define MPERF_WANT_FIELD(type, name) type name;
#include "abi.inc"
};

#ifdef __cplusplus
#define MPERF_SIZE(type, n) static_assert(sizeof(struct type) == (n), "the wire's layout")
#else
#define MPERF_SIZE(type, n) _Static_assert(sizeof(struct type) == (n), "the wire's layout")
#endif
MPERF_SIZE(mperf_feed_head, 8);
MPERF_SIZE(mperf_feed_hello, 32);
MPERF_SIZE(mperf_feed_object, 24);
MPERF_SIZE(mperf_feed_table, 32);
MPERF_SIZE(mperf_feed_region, 32);
MPERF_SIZE(mperf_feed_thread, 24);
MPERF_SIZE(mperf_feed_deltas, 40);
MPERF_SIZE(mperf_feed_spent, MPERF_SPENT_SHORT_BYTES + 64);
MPERF_SIZE(mperf_feed_place, 48);
MPERF_SIZE(mperf_feed_tally, 72);
MPERF_SIZE(mperf_feed_gone, 16);
MPERF_SIZE(mperf_feed_round, 24);
MPERF_SIZE(mperf_feed_ask, 16);
MPERF_SIZE(mperf_feed_grant, 16);
MPERF_SIZE(mperf_feed_select, 16);
MPERF_SIZE(mperf_feed_want, 16);
MPERF_SIZE(mperf_delta, 16);
#undef MPERF_SIZE
