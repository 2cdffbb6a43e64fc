/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * store: what is kept, for how long at the rate of the last days, and what goes next. All of it is
 * known to the daemon without opening a file, but there may be thousands of files and pins, so a child writes the
 * answer.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/control/job_pin.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"

static const struct answer_column file_columns[] = {
	{"tier", "Tier", MPERF__UNIT__UNIT_NONE},
	{"file", "File", MPERF__UNIT__UNIT_NONE},
	{"since", "Since", MPERF__UNIT__UNIT_TIME},
	{"until", "Until", MPERF__UNIT__UNIT_TIME},
	{"bytes", "Size", MPERF__UNIT__UNIT_BYTES},
	{"state", "State", MPERF__UNIT__UNIT_NONE},
};

static const struct answer_column tier_columns[] = {
	{"tier", "Tier", MPERF__UNIT__UNIT_NONE},
	{"since", "Since", MPERF__UNIT__UNIT_TIME},
	{"files", "Files", MPERF__UNIT__UNIT_COUNT},
	{"bytes", "Size", MPERF__UNIT__UNIT_BYTES},
	{"bytes_a_day", "Size per day", MPERF__UNIT__UNIT_BYTES},
	{"keeps_ns", "Will reach back", MPERF__UNIT__UNIT_NS},
};

static const struct answer_column next_columns[] = {
	{"file", "Removed next", MPERF__UNIT__UNIT_NONE},
	{"reason", "Reason", MPERF__UNIT__UNIT_NONE},
	{"when", "When", MPERF__UNIT__UNIT_TIME},
	{"budget", "Budget", MPERF__UNIT__UNIT_BYTES},
	{"used", "Used", MPERF__UNIT__UNIT_BYTES},
	{"free", "Free on disc", MPERF__UNIT__UNIT_BYTES},
};

static const struct answer_column share_columns[] = {
	{"user", "User", MPERF__UNIT__UNIT_NONE},
	{"bytes", "Written", MPERF__UNIT__UNIT_BYTES},
	{"room", "May write", MPERF__UNIT__UNIT_BYTES},
	{"detail", "Detail", MPERF__UNIT__UNIT_NONE},
	{"cut", "Samples cut", MPERF__UNIT__UNIT_COUNT},
	{"unlabelled", "Without job", MPERF__UNIT__UNIT_COUNT},
};

struct store_answer {
	struct row_stream stream;
	struct answer answer;
	const struct store *store;
	const struct peer *peer;
	struct shares shares; /* a copy: to look at an account may make one */
	struct store_limits limits;
	struct store_forecast forecast;
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(t) ((struct answer_value){.kind = ANSWER_TEXT, .text = (t)})
#define NUMBER(n) ((struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)(n)})
#define ABSENT ((struct answer_value){.kind = ANSWER_ABSENT})

static const char *state_of(const struct store_file *f)
{
	return f->corrupt               ? "damaged, set aside"
	       : f->other_version       ? "of another version, not read"
	       : f->sealed              ? "sealed"
	       : f->left                ? "unfinished, will be sealed"
	       : f->tier == TIER_WINDOW ? "being written"
					: "grows";
}

static int begin_table(
	struct store_answer *s, const char *name, const struct answer_column *column, size_t n)
{
	int r = row_stream_table(&s->stream, name);
	return r == 0 ? s->answer.columns(s->answer.userdata, column, n) : r;
}

static int send_row(struct store_answer *s, const struct answer_value *v, size_t n)
{
	return s->answer.row(s->answer.userdata, v, n);
}

static int send_files(struct store_answer *s)
{
	int r = begin_table(s, "file", file_columns, LENGTH(file_columns));
	for (size_t i = 0; i < s->store->n_files && r == 0; i++) {
		const struct store_file *f = &s->store->file[i];
		struct answer_moment since, until;
		struct answer_value v[] = {
			f->corrupt ? ABSENT : TEXT(tier_name(f->tier)),
			TEXT(f->name),
			f->corrupt ? ABSENT : answer_moment(&since, f->start_ns),
			f->corrupt ? ABSENT : answer_moment(&until, f->end_ns),
			NUMBER(f->bytes),
			TEXT(state_of(f)),
		};
		r = send_row(s, v, LENGTH(v));
	}
	return r;
}

static int send_tier(struct store_answer *s, enum tier tier)
{
	int64_t since_ns = INT64_MAX;
	uint64_t bytes = 0, n = 0;
	for (size_t i = 0; i < s->store->n_files; i++) {
		const struct store_file *f = &s->store->file[i];
		if (f->tier != tier || f->corrupt)
			continue;
		since_ns = f->start_ns < since_ns ? f->start_ns : since_ns;
		bytes += f->bytes;
		n++;
	}
	uint64_t a_day = s->forecast.bytes_a_day[tier];
	struct answer_moment since;
	struct answer_value v[] = {
		TEXT(tier_name(tier)),
		answer_moment(&since, since_ns),
		NUMBER(n),
		NUMBER(bytes),
		a_day ? NUMBER(a_day) : ABSENT,
		a_day ? NUMBER(s->forecast.keeps_ns[tier]) : ABSENT,
	};
	return send_row(s, v, LENGTH(v));
}

static int send_next(struct store_answer *s)
{
	const struct store_forecast *f = &s->forecast;
	struct answer_moment when;
	struct answer_value v[] = {
		f->next ? TEXT(f->next->name) : ABSENT,
		f->next ? TEXT(f->reason) : ABSENT,
		f->next ? answer_moment(&when, f->next_ns) : ABSENT,
		NUMBER(s->limits.budget_bytes),
		NUMBER(s->store->bytes),
		NUMBER(s->store->free_bytes),
	};
	int r = begin_table(s, "next", next_columns, LENGTH(next_columns));
	return r == 0 ? send_row(s, v, LENGTH(v)) : r;
}

static int send_shares(struct store_answer *s)
{
	int r = begin_table(s, "share", share_columns, LENGTH(share_columns));
	for (size_t i = 0; i < s->shares.n_users && r == 0; i++) {
		const struct share_user *u = &s->shares.user[i];
		struct answer_value v[] = {
			u->uid == (uid_t)-1 ? TEXT("others") : NUMBER(u->uid),
			NUMBER(u->bytes),
			NUMBER(u->balance > 0 ? u->balance : 0),
			TEXT(share_level_says(share_level(&s->shares, u->uid))),
			NUMBER(u->n_cut),
			NUMBER(u->n_unlabelled),
		};
		r = send_row(s, v, LENGTH(v));
	}
	return r;
}

static int send_tables(struct store_answer *s)
{
	int r = send_files(s);
	if (r == 0)
		r = pin_rows_send(&s->stream, &s->answer, s->store, s->peer);
	if (r == 0)
		r = begin_table(s, "tier", tier_columns, LENGTH(tier_columns));
	for (enum tier tier = TIER_WINDOW; tier < N_TIERS && r == 0; tier++)
		r = send_tier(s, tier);
	if (r == 0)
		r = send_next(s);
	return r == 0 ? send_shares(s) : r;
}

/* Is there a store, and may this peer see it? 0; 1 after the peer was told why not; -errno. */
static int judge(struct request *q)
{
	const struct control_options *o = q->peer->options;
	int r;
	if (!o->service)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd keeps no store: it serves only one client");
	else if (!q->peer->sees_all)
		r = request_refuse_group(q, "you may not see the files of the store");
	else if (!o->service->store)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See mperfd's journal; storing resumes once this is fixed.",
			"nothing is stored now: %s",
			*o->service->store_trouble ? o->service->store_trouble
						   : "the store is not open");
	else
		return 0;
	return r < 0 ? r : 1;
}

static int answer_in_child(struct request *q, void *userdata)
{
	(void)userdata;
	int judged = judge(q); /* it waited for a place */
	if (judged != 0)
		return judged < 0 ? judged : 0;
	const struct conf *c = q->peer->options->conf;
	const struct service *service = q->peer->options->service;
	const struct shares *shares = service_shares(service);
	struct store_answer s = {
		.store = service->store,
		.peer = q->peer,
		.shares = shares ? *shares : (struct shares){0},
		.limits =
			{
				.budget_bytes = c->budget_bytes,
				.min_free_bytes = c->min_free_bytes,
				.keep_ns = {[TIER_WINDOW] = c->keep_windows_ns,
					[TIER_MINUTE] = c->keep_minutes_ns,
					[TIER_HOUR] = c->keep_hours_ns},
			},
	};
	store_forecast(s.store, &s.limits, (int64_t)clock_ns(CLOCK_REALTIME), &s.forecast);
	s.answer = row_stream_answer(&s.stream, q);
	int r = send_tables(&s);
	int ended = row_stream_end(&s.stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(q, 0);
	return r < 0 ? r : 0;
}

int control_store(struct request *q, const Mperf__Request *m)
{
	static const struct offload_answer in_child = {.run = answer_in_child};
	(void)m;
	int r = judge(q);
	return r == 0 ? offload_start(q, &in_child, NULL) : r < 0 ? r : 0;
}
