/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * store: the stored files, how long they will last at the rate of the last days, and the next ones
 * to be removed. The daemon knows all of it without opening a file, but there may be thousands of
 * files and pins, so a child writes the answer.
 */

#include "daemon/answer/row.h"
#include "daemon/control/job_pin.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"

struct store_answer {
	const struct answer *to;
	const struct store *store;
	const struct peer *peer;
	struct shares shares; /* a copy, since looking up an account may create one */
	struct store_limits limits;
	struct store_forecast forecast;
};

static const char *state_of(const struct store_file *f)
{
	return f->corrupt               ? "damaged, set aside"
	       : f->other_version       ? "of another version, not read"
	       : f->sealed              ? "sealed"
	       : f->left                ? "unfinished, will be sealed"
	       : f->tier == TIER_WINDOW ? "being written"
					: "grows";
}

#define FILE_TABLE(COLUMN, KNOWN_IF)                                                               \
	KNOWN_IF(tier, "Tier", text, !f->corrupt, tier_name(f->tier))                              \
	COLUMN(file, "File", text, f->name)                                                        \
	KNOWN_IF(since, "Since", time, !f->corrupt, f->start_ns)                                   \
	KNOWN_IF(until, "Until", time, !f->corrupt, f->end_ns)                                     \
	COLUMN(bytes, "Size", bytes, f->bytes)                                                     \
	COLUMN(state, "State", text, state_of(f))

static int send_files(const struct store_answer *s)
{
	int r = TABLE_BEGIN(s->to, "file", FILE_TABLE);
	for (size_t i = 0; i < s->store->n_files && r == 0; i++) {
		const struct store_file *f = &s->store->file[i];
		r = TABLE_ROW(s->to, FILE_TABLE);
	}
	return r;
}

#define TIER_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(tier, "Tier", text, tier_name(tier))                                                \
	COLUMN(since, "Since", time, since_ns)                                                     \
	COLUMN(files, "Files", count, n)                                                           \
	COLUMN(bytes, "Size", bytes, bytes)                                                        \
	KNOWN_IF(bytes_a_day, "Size per day", bytes, a_day, a_day)                                 \
	KNOWN_IF(keeps_ns, "Will reach back", ns, a_day && s->forecast.keeps_ns[tier] > 0,         \
		s->forecast.keeps_ns[tier])

static int send_tier(const struct store_answer *s, enum tier tier)
{
	int64_t since_ns = INT64_MAX;
	uint64_t bytes = 0, n = 0, a_day = s->forecast.bytes_a_day[tier];
	for (size_t i = 0; i < s->store->n_files; i++) {
		const struct store_file *f = &s->store->file[i];
		if (f->tier != tier || f->corrupt)
			continue;
		since_ns = f->start_ns < since_ns ? f->start_ns : since_ns;
		bytes += f->bytes;
		n++;
	}
	return TABLE_ROW(s->to, TIER_TABLE);
}

static int send_tiers(const struct store_answer *s)
{
	int r = TABLE_BEGIN(s->to, "tier", TIER_TABLE);
	for (enum tier tier = TIER_WINDOW; tier < N_TIERS && r == 0; tier++)
		r = send_tier(s, tier);
	return r;
}

#define NEXT_TABLE(COLUMN, KNOWN_IF)                                                               \
	KNOWN_IF(file, "Removed next", text, f->next, f->next->name)                               \
	KNOWN_IF(reason, "Reason", text, f->next, f->reason)                                       \
	KNOWN_IF(when, "When", time, f->next, f->next_ns)                                          \
	COLUMN(budget, "Budget", bytes, s->limits.budget_bytes)                                    \
	COLUMN(used, "Used", bytes, s->store->bytes)                                               \
	COLUMN(free, "Free on disc", bytes, s->store->free_bytes)

static int send_next(const struct store_answer *s)
{
	const struct store_forecast *f = &s->forecast;
	return TABLE_OF_ONE(s->to, "next", NEXT_TABLE);
}

#define SHARE_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(user, "User", cell,                                                                 \
		u->uid == (uid_t) - 1 ? cell_text("others") : cell_number(u->uid))                 \
	COLUMN(bytes, "Written", bytes, u->bytes)                                                  \
	COLUMN(room, "May write", bytes, u->balance > 0 ? u->balance : 0)                          \
	COLUMN(detail, "Detail", text, share_level_says(share_level(&s->shares, u->uid)))          \
	COLUMN(cut, "Samples cut", count, u->n_cut)                                                \
	COLUMN(unlabelled, "Without job", count, u->n_unlabelled)

static int send_shares(struct store_answer *s)
{
	int r = TABLE_BEGIN(s->to, "share", SHARE_TABLE);
	for (size_t i = 0; i < s->shares.n_users && r == 0; i++) {
		const struct share_user *u = &s->shares.user[i];
		r = TABLE_ROW(s->to, SHARE_TABLE);
	}
	return r;
}

static int send_tables(struct store_answer *s)
{
	int r = send_files(s);
	if (r == 0)
		r = job_pins_send(s->to, s->store, s->peer);
	if (r == 0)
		r = send_tiers(s);
	if (r == 0)
		r = send_next(s);
	return r == 0 ? send_shares(s) : r;
}

/* Is there a store, and may this peer see it? 0; 1 after a refusal was sent; -errno. */
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
	int judged = judge(q); /* rights may have changed while it waited */
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
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	s.to = &to;
	return row_stream_done(&stream, send_tables(&s));
}

int control_store(struct request *q, const Mperf__Request *m)
{
	static const struct offload_answer in_child = {.run = answer_in_child};
	(void)m;
	int r = judge(q);
	return r == 0 ? offload_start(q, &in_child, NULL) : r < 0 ? r : 0;
}
