/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A frame as text has the parts of a screen, from top to bottom: time and rate, the harts, the
 * rows, and the provenance. It is written in one piece, so that a reader of a pipe never waits for
 * the rest of a frame.
 */
#include "client/top/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/show/escape.h"
#include "client/show/table.h"
#include "client/top/harts.h"
#include "proto/base/memory.h"
#include "proto/loss.h"
#include "proto/syntax/unit.h"

#define NS_PER_S 1000000000ull
/* Share of samples whose names are still coming; less is not worth a word. */
#define COMING_SHARE_MIN 0.01
#define WIDE 110 /* columns for figures with all digits and two names */

static void write_clock(FILE *f, uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm local;
	char text[16] = "";
	if (localtime_r(&seconds, &local))
		strftime(text, sizeof(text), "%H:%M:%S", &local);
	fputs(text, f);
}

static void write_host(FILE *f)
{
	char host[256] = "";
	gethostname(host, sizeof(host) - 1);
	escape_terminal(f, *host ? host : "localhost");
}

static uint64_t samples_lost(const Mperf__Provenance *p)
{
	uint64_t lost = 0;
	for (size_t i = 0; i < p->n_loss; i++)
		lost += p->loss[i]->samples ? p->loss[i]->count : 0;
	return lost;
}

/* Sum over all harts: busy seconds without samples. */
static uint64_t seconds_blind(const Mperf__Provenance *p)
{
	uint64_t seconds = 0;
	for (size_t i = 0; i < p->n_loss; i++)
		seconds += strcmp(p->loss[i]->cause, LOSS_CAUSE_BLIND) == 0 ? p->loss[i]->count : 0;
	return seconds;
}

static void write_rates(FILE *f, const Mperf__Provenance *p)
{
	char text[UNIT_TEXT_BYTES];
	if (p->hz > 0) {
		unit_count_text(p->hz, text);
		fprintf(f, "  %s Hz", text);
	}
	if (p->seconds > 0) {
		unit_text(MPERF__UNIT__UNIT_COUNT, (double)p->samples / p->seconds, text);
		fprintf(f, "  %s samples/s", text);
	}
	unit_count_text((int64_t)samples_lost(p), text);
	fprintf(f, "  lost %s", text);
	uint64_t blind_s = seconds_blind(p);
	if (blind_s > 0)
		fprintf(f, "  %llu busy second%s without samples", (unsigned long long)blind_s,
			blind_s == 1 ? "" : "s");
	if (p->samples > 0)
		fprintf(f, "  %.1f %% named", 100 * p->named_share);
	if (p->placed_share > p->named_share)
		fprintf(f, ", %.1f %% placed", 100 * p->placed_share);
	if (p->coming_share >= COMING_SHARE_MIN)
		fprintf(f, " (%.0f %% are still coming)", 100 * p->coming_share);
}

char *top_text_headline(const struct top_model *m)
{
	_cleanup_(freep) char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);
	if (!f)
		return NULL;
	write_host(f);
	if (m->shown.provenance) {
		fputs("  ", f);
		write_clock(f, m->shown_ns);
		write_rates(f, m->shown.provenance);
	}
	return fclose(f) == 0 ? TAKE_PTR(line) : NULL;
}

static void write_list(FILE *f, const char *what, char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? ", " : what, f);
		escape_terminal(f, list[i]);
	}
}

char *top_text_narrowed(const struct options *o)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	for (size_t i = 0; i < o->target.n_pids; i++)
		fprintf(f, "%s%d", i > 0 ? ", " : "; process ", o->target.pid[i]);
	write_list(f, "; named ", o->narrowing.comm, o->narrowing.n_comms);
	write_list(f, "; in ", o->narrowing.cgroup, o->narrowing.n_cgroups);
	for (size_t i = 0; i < o->target.n_cpus; i++)
		fprintf(f, "%s%u", i > 0 ? "," : "; on hart ", o->target.cpu[i]);
	return fclose(f) == 0 ? TAKE_PTR(text) : NULL;
}

static void write_share(FILE *f, const char *what, bool has, double share)
{
	char text[UNIT_TEXT_BYTES] = "-";
	if (has)
		unit_text(MPERF__UNIT__UNIT_SHARE, share, text);
	fprintf(f, "%s%8s", what, text);
}

static void write_hart(FILE *f, const struct top_hart *h)
{
	char label[32], text[UNIT_TEXT_BYTES];

	top_hart_label(h, label, sizeof(label));
	fprintf(f, "hart%s %-7s", h->first == h->last ? " " : "s", label);
	write_share(f, "", h->has_load, h->load);
	write_share(f, "  user ", h->has_user, h->user);
	write_share(f, "  kernel ", h->has_kernel, h->kernel);
	fputs("  ", f);
	escape_terminal(f, *h->rung ? h->rung : "-");
	if (h->has_hz) {
		unit_text(MPERF__UNIT__UNIT_HZ, h->hz, text);
		fprintf(f, "  %s", text);
	}
	if (h->has_ipc)
		fprintf(f, "  IPC %.2f", h->ipc);
	fputc('\n', f);
}

static int write_tables(const struct top_model *m, const struct options *o, FILE *f)
{
	static const char *const hide[] = {"self_ns", NULL};
	/* their ratio (IPC) takes less room */
	static const char *const hide_more[] = {"self_ns", "cycles", "instructions", NULL};
	struct table_options look = {.raw = o->look.raw, .hide = hide};
	const struct reply *harts = top_model_harts(m), *rows = top_model_rows(m);
	struct top_hart line[TOP_TEXT_HARTS];

	table_look(stdout, o->look.no_color, &look);
	if (look.width > 0 && look.width < WIDE)
		look.hide = hide_more;
	size_t n = harts && !o->look.raw ? top_harts(harts, line, TOP_TEXT_HARTS) : 0;
	for (size_t i = 0; i < n; i++)
		write_hart(f, &line[i]);
	int r = harts && o->look.raw ? table_print(harts, &look, f) : 0;
	if (r == 0) {
		fputc('\n', f);
		r = table_print(rows, &look, f);
	}
	return r;
}

static int write_text(const struct top_model *m, const struct options *o, FILE *f)
{
	_cleanup_(freep) char *headline = top_text_headline(m), *narrowed = top_text_narrowed(o);
	if (!headline || !narrowed)
		return -ENOMEM;

	if (m->n_frames > 1)
		fputc('\n', f);
	if (!o->look.raw)
		fprintf(f, "%s%s\n", headline, narrowed);
	int r = write_tables(m, o, f);
	if (r == 0 && !o->look.raw)
		reply_write_provenance(m->shown.provenance, f);
	return r;
}

int top_text_write(const struct top_model *m, const struct options *o, FILE *f)
{
	const struct reply *rows = top_model_rows(m);
	if (!rows || !m->shown.provenance)
		return 0;
	struct replies_frame frame = {
		.rows = rows->columns->table, .time = (double)m->shown_ns / (double)NS_PER_S};
	int r = o->look.json ? replies_write_json(&m->shown, &frame, f) : write_text(m, o, f);
	if (r == 0 && fflush(f) != 0)
		r = -EIO;
	return r;
}
