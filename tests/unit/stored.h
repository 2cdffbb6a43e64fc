/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A session made by hand, stored in a segment, and what queries answer about it
 *
 * stored_begin makes a folder, a sampler that was never opened, and a segment; tasks, frames and
 * samples are added in one line each; stored_seal gives the sealed file back, opened.
 */

#include "daemon/query/query.h"
#include "daemon/store/segment/write.h"

#define STORED_HARTS 4

#define STORED_BOOT "11111111-2222-3333-4444-555555555555"

struct stored {
	char folder[64], path[128];
	struct sampler sampler;
	struct task_table tasks;
	struct file_table files;
	struct stack_tree stacks;
	struct window window;
	uint64_t lost[STORED_HARTS][N_LOSSES];
	uint64_t realtime_ns; /* of monotonic 0 */
	struct segment *segment;
	sqlite3 *db; /* once sealed */
};

/* Events are added between stored_folder and stored_begin; the first one leads all harts. */
void stored_folder(struct stored *s);
int stored_event(struct stored *s, uint32_t type, uint64_t config, const char *name);
void stored_begin(struct stored *s);
/* Switches of that hart are only counted; call before stored_begin. */
void stored_uncut(struct stored *s, int hart);
/* stored_folder, cpu-clock, stored_begin. */
void stored_begin_clock(struct stored *s);
/* stored_folder, cpu-clock leading cycles and instructions, stored_begin. */
void stored_begin_group(struct stored *s);

struct task *stored_task(struct stored *s, pid_t pid, pid_t tid, const char *comm);
/* Give a process labels, as JSON, of its user. */
void stored_label(struct stored *s, struct task *process, const char *json);
struct frame *stored_frame(
	struct stored *s, enum file_kind kind, const char *path, uint64_t offset);
/* Name a frame: innermost function first, "f" or "f@source:line"; ended by NULL. */
void stored_name(struct frame *frame, ...) __attribute__((sentinel));
/* stored_frame of an ELF file at a new offset, named. */
struct frame *stored_function(struct stored *s, const char *path, const char *function);

struct stored_sample {
	struct task *task;
	int hart, event;
	uint64_t count, weight_ns; /* 0: 1 and 10 ms, unless `switched` */
	uint64_t time_ns;          /* kept if s.window.keeps_moments */
	uint64_t uncounted;
	bool switched, truncated; /* switched: count and weight are 0 */
	struct {
		int event;
		uint64_t value, enabled_ns, running_ns;
	} read[3];
	uint32_t n_reads;
	uint64_t period;
	struct frame *frame[8]; /* leaf first, ended by NULL */
};
void stored_add(struct stored *s, const struct stored_sample *sample);
struct segment_flush stored_view(struct stored *s);
/* Flush what was added as the window [start, end). Returns segment_flush's value. */
int stored_flush(struct stored *s, uint64_t start_ns, uint64_t end_ns);
/* Flush what is left, update, seal, open. */
sqlite3 *stored_seal(struct stored *s);
/* prog: 6 samples in hot (called by main), 3 in main, 1 in the kernel below hot. */
struct task *stored_program(struct stored *s);
/* A sealed session: prog with its thread worker in /ci/job-1, quux in /cinema, a hart each. */
void stored_tasks(struct stored *s);
void stored_end(struct stored *s);

/* First column of the first row; -1 if there is none. */
int64_t stored_number(sqlite3 *db, const char *sql);
/* The same as text, "" if there is none; static buffer. */
const char *stored_string(sqlite3 *db, const char *sql);

/* Answers as arrays. */
#define STORED_ROWS_MAX 64
#define STORED_COLUMNS_MAX 16
struct stored_answer {
	char column[STORED_COLUMNS_MAX][32];
	Mperf__Unit unit[STORED_COLUMNS_MAX];
	size_t n_columns;
	struct {
		int kind;
		char text[128];
		double real; /* of integers too */
	} cell[STORED_ROWS_MAX][STORED_COLUMNS_MAX];
	size_t n_rows;
	char event[256], rung[512], switches[64], note[ANSWER_NOTES_MAX][256];
	uint32_t hz, n_notes, n_losses;
	uint64_t samples, period;
	struct {
		char cause[64];
		uint64_t count;
	} loss[N_LOSSES];
	double named_share, placed_share, coming_share, seconds, cost_share, uncounted_share;
	struct answer_wall wall;
	size_t n_told;     /* provenances */
	size_t stop_after; /* rows; 0: never; then the row callback returns 77 */
	struct query_error error;
};
int stored_hotspots(
	sqlite3 *db, const char *by, const struct query_filter *filter, struct stored_answer *a);
int stored_flamegraph(sqlite3 *db, const struct query_filter *filter, struct stored_answer *a);
struct answer stored_answer(struct stored_answer *a);
/* Row whose first column reads so; fails the test if there is none. */
size_t stored_row(const struct stored_answer *a, const char *first);
int stored_column(const struct stored_answer *a, const char *name);
double stored_real(const struct stored_answer *a, size_t row, const char *column);
const char *stored_text(const struct stored_answer *a, size_t row, const char *column);
bool stored_absent(const struct stored_answer *a, size_t row, const char *column);
/* The flame graph as "comm;f;g 123" lines, one per node that has a value; static buffer. */
const char *stored_folded(const struct stored_answer *a);
