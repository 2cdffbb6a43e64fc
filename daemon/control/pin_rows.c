/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/control/pin_rows.h"
#include "daemon/answer/row.h"

#include <stdio.h>

#include "daemon/control/peer.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct answer_column columns[] = {
	{"job", "Job", MPERF__UNIT__UNIT_NONE},
	{"uid", "User", MPERF__UNIT__UNIT_NONE},
	{"since", "Since", MPERF__UNIT__UNIT_TIME},
	{"until", "Until", MPERF__UNIT__UNIT_TIME},
	{"bytes", "Size", MPERF__UNIT__UNIT_BYTES},
	{"kept", "Kept", MPERF__UNIT__UNIT_NONE},
	{"by", "Pinned by", MPERF__UNIT__UNIT_NONE},
	{"file", "File", MPERF__UNIT__UNIT_NONE},
};

bool pin_is_shown(const struct store_pin *p, const struct peer *peer)
{
	return peer->sees_all || p->uid == peer->uid || p->by == peer->uid;
}

int pin_rows_begin(struct row_stream *stream, const struct answer *answer)
{
	int r = row_stream_table(stream, "pin");
	return r == 0 ? answer->columns(answer->userdata, columns, LENGTH(columns)) : r;
}

static const char *says(const char *json, char *text, size_t size)
{
	struct label label[LABELS_MAX];
	return labels_say(label, labels_read(json, label), text, size);
}

static const char *says_wanted(const char *json, char *text, size_t size)
{
	struct label label[LABELS_MAX];
	return labels_say_wanted(label, labels_read(json, label), text, size);
}

int pin_rows_one(const struct answer *answer, const struct store_pin *p)
{
	char job[LABELS_BYTES_MAX], group[LABELS_BYTES_MAX];
	char kept[LABELS_BYTES_MAX + 32] = "until unpinned";
	if (p->keep > 0)
		snprintf(kept, sizeof(kept), "last %u of %s", p->keep,
			says_wanted(p->group, group, sizeof(group)));
	struct answer_value v[] = {
		{.kind = ANSWER_TEXT, .text = says(p->labels, job, sizeof(job))},
		{.kind = ANSWER_INTEGER, .integer = p->uid},
		cell_time(p->start_ns),
		cell_time(p->end_ns),
		{.kind = ANSWER_INTEGER, .integer = (int64_t)p->bytes},
		{.kind = ANSWER_TEXT, .text = kept},
		{.kind = ANSWER_INTEGER, .integer = p->by},
		{.kind = ANSWER_TEXT, .text = p->name},
	};
	return answer->row(answer->userdata, v, LENGTH(v));
}

int pin_rows_send(struct row_stream *stream, const struct answer *answer, const struct store *s,
	const struct peer *peer)
{
	int r = pin_rows_begin(stream, answer);
	for (size_t i = 0; i < s->n_pins && r == 0; i++)
		if (pin_is_shown(&s->pin[i], peer))
			r = pin_rows_one(answer, &s->pin[i]);
	return r;
}
