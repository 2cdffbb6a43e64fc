/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Answers: rows become chunks, chunks become frames in the peer's outgoing buffer. Text that came
 * from other programs may be any bytes; protobuf strings are UTF-8, so a byte that is not part of
 * a valid sequence is written as \xNN here, once, for all commands.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/sampler/sampler.h"
#include "proto/base/memory.h"

/* Length of the valid UTF-8 sequence at s, 0 if there is none. Source: RFC 3629, section 4. */
static size_t sequence_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80                   ? 1
		   : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
		   : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						 : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0) ||
		(s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}

/* A copy of text that is valid UTF-8; NULL without memory. */
static char *mend(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	char *copy = malloc(4 * strlen(text) + 1);
	if (!copy)
		return NULL;
	char *to = copy;
	while (*s) {
		size_t n = sequence_length(s);
		if (n == 0) {
			to += sprintf(to, "\\x%02x", *s++);
			continue;
		}
		memcpy(to, s, n);
		to += n;
		s += n;
	}
	*to = '\0';
	return copy;
}

bool request_has_room(const struct request *q)
{
	size_t filled = frame_buffer_filled(&q->peer->out);
	return filled < 4 * FRAME_CHUNK_BYTES && filled < peer_out_bytes_max(q->peer) / 2 &&
	       peer_has_out_room(q->peer);
}

static int send_answer(struct request *q, Mperf__Answer *a)
{
	struct peer *p = q->peer;
	/* the end always fits: otherwise the client would wait for ever */
	bool end = a->body_case == MPERF__ANSWER__BODY_DONE ||
		   a->body_case == MPERF__ANSWER__BODY_FAILURE;
	if (!end && frame_buffer_filled(&p->out) > peer_out_bytes_max(p))
		return ANSWER_FULL;
	a->id = q->id;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_ANSWER;
	m.answer = a;
	int r = frame_put(&p->out, &m);
	return r == 0 && p->sent ? p->sent(p) : r;
}

int request_ready(struct request *q, const char *note)
{
	Mperf__Ready ready = MPERF__READY__INIT;
	ready.note = (char *)note;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_READY;
	a.ready = &ready;
	return send_answer(q, &a);
}

int request_ready_to_sample(struct request *q, const struct sampler *s)
{
	char note[256] = "";
	if (s->rate_lowered)
		snprintf(note, sizeof(note),
			"sampling at %u Hz: the kernel throttles more, since its limit is %u "
			"samples a second (kernel.perf_event_max_sample_rate)",
			s->hz, s->machine.max_sample_rate);
	return request_ready(q, note);
}

int request_progress(struct request *q, const char *what, uint64_t done, uint64_t total)
{
	Mperf__Progress progress = MPERF__PROGRESS__INIT;
	progress.what = (char *)what;
	progress.done = done;
	progress.total = total;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_PROGRESS;
	a.progress = &progress;
	return send_answer(q, &a);
}

int request_bytes(struct request *q, const void *bytes, size_t n, uint64_t offset, uint64_t total)
{
	Mperf__Bytes b = MPERF__BYTES__INIT;
	b.data.data = (uint8_t *)bytes;
	b.data.len = n;
	b.offset = offset;
	b.total = total;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_BYTES;
	a.bytes = &b;
	return send_answer(q, &a);
}

int request_done(struct request *q, int status)
{
	Mperf__Done done = MPERF__DONE__INIT;
	done.status = status;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_DONE;
	a.done = &done;
	return send_answer(q, &a);
}

int request_fail(
	struct request *q, Mperf__FailureKind kind, const char *remedy, const char *format, ...)
{
	char what[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);

	_cleanup_(freep) char *what_mended = mend(what), *remedy_mended = mend(remedy);
	if (!what_mended || !remedy_mended)
		return -ENOMEM;
	Mperf__Failure failure = MPERF__FAILURE__INIT;
	failure.kind = kind;
	failure.what = what_mended;
	failure.remedy = remedy_mended;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_FAILURE;
	a.failure = &failure;
	return send_answer(q, &a);
}

int request_profile(struct request *q, const Mperf__Profile *part)
{
	_cleanup_(freep) char **text = calloc(part->n_text + 1, sizeof(*text));
	Mperf__Profile m = *part;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	int r = text ? 0 : -ENOMEM;
	for (size_t i = 0; i < part->n_text && r == 0; i++) {
		text[i] = mend(part->text[i]);
		r = text[i] ? 0 : -ENOMEM;
	}
	m.text = text;
	a.body_case = MPERF__ANSWER__BODY_PROFILE;
	a.profile = &m;
	if (r == 0)
		r = send_answer(q, &a);
	for (size_t i = 0; text && i < part->n_text; i++)
		free(text[i]);
	return r;
}

static int stream_columns(void *u, const struct answer_column *c, size_t n)
{
	struct row_stream *s = u;
	_cleanup_(freep) Mperf__Column *column = calloc(n + 1, sizeof(*column));
	_cleanup_(freep) Mperf__Column **columns = calloc(n + 1, sizeof(*columns));
	if (!column || !columns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		mperf__column__init(&column[i]);
		column[i].name = (char *)c[i].name;
		column[i].title = (char *)c[i].title;
		column[i].unit = c[i].unit;
		columns[i] = &column[i];
	}
	s->n_columns = n;
	Mperf__Columns message = MPERF__COLUMNS__INIT;
	message.n_column = n;
	message.column = columns;
	message.table = s->table;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_COLUMNS;
	a.columns = &message;
	return send_answer(s->request, &a);
}

/* Local time as text; "" if there is no such time. strftime gives +0100, but ISO 8601 does not mix that with
 * a time that has colons. */
static const char *time_text(int64_t realtime_ns, char text[static 40])
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	size_t n = 0;
	if (localtime_r(&seconds, &tm))
		n = strftime(text, 39, "%Y-%m-%dT%H:%M:%S%z", &tm);
	if (n < 3)
		return "";
	memmove(text + n - 1, text + n - 2, 3);
	text[n - 2] = ':';
	return text;
}

static int series_set(Mperf__Value *to, const struct answer_series *from)
{
	Mperf__Series *series = malloc(sizeof(*series));
	if (!series)
		return -ENOMEM;
	mperf__series__init(series);
	to->series = series;
	to->is_case = MPERF__VALUE__IS_SERIES;
	series->value = calloc(from->n + 1, sizeof(*series->value));
	if (!series->value)
		return -ENOMEM;
	memcpy(series->value, from->value, from->n * sizeof(*series->value));
	series->n_value = from->n;
	return 0;
}

static int value_set(Mperf__Value *to, const struct answer_value *from)
{
	char time[40];
	const char *text = from->text;
	switch (from->kind) {
	case ANSWER_TIME:
		text = time_text(from->integer, time);
		if (!*text)
			break;
		/* fall through */
	case ANSWER_TEXT:
		to->text = mend(text);
		if (!to->text)
			return -ENOMEM;
		to->is_case = MPERF__VALUE__IS_TEXT;
		break;
	case ANSWER_INTEGER:
		to->integer = from->integer;
		to->is_case = MPERF__VALUE__IS_INTEGER;
		break;
	case ANSWER_REAL:
		to->real = from->real;
		to->is_case = MPERF__VALUE__IS_REAL;
		break;
	case ANSWER_SERIES:
		return series_set(to, &from->series);
	case ANSWER_ABSENT:
		break;
	}
	return 0;
}

/* A row made of malloced parts, to be freed by mperf__row__free_unpacked. */
static int row_build(const struct answer_value *v, size_t n, Mperf__Row **ret_row)
{
	Mperf__Row *row = malloc(sizeof(*row));
	if (!row)
		return -ENOMEM;
	mperf__row__init(row);
	row->value = calloc(n + 1, sizeof(*row->value));
	int r = row->value ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		Mperf__Value *value = malloc(sizeof(*value));
		if (!value) {
			r = -ENOMEM;
			break;
		}
		mperf__value__init(value);
		row->value[row->n_value++] = value;
		r = value_set(value, &v[i]);
	}
	if (r < 0) {
		mperf__row__free_unpacked(row, NULL);
		return r;
	}
	*ret_row = row;
	return 0;
}

static int stream_flush(struct row_stream *s)
{
	Mperf__Rows rows = MPERF__ROWS__INIT;
	rows.n_row = s->n_rows;
	rows.row = s->row;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &rows;
	int r = s->n_rows > 0 ? send_answer(s->request, &a) : 0;
	for (size_t i = 0; i < s->n_rows; i++)
		mperf__row__free_unpacked(s->row[i], NULL);
	s->n_rows = 0;
	s->bytes = 0;
	return r;
}

static int stream_row(void *u, const struct answer_value *v, size_t n)
{
	struct row_stream *s = u;
	if (s->n_rows == s->size) {
		size_t size = s->size ? 2 * s->size : 256;
		Mperf__Row **row = realloc(s->row, size * sizeof(*row));
		if (!row)
			return -ENOMEM;
		s->row = row;
		s->size = size;
	}
	int r = row_build(v, n, &s->row[s->n_rows]);
	if (r < 0)
		return r;
	s->bytes += mperf__row__get_packed_size(s->row[s->n_rows++]) + 4;
	return s->bytes >= FRAME_CHUNK_BYTES ? stream_flush(s) : 0;
}

static int stream_provenance(void *u, const struct answer_provenance *p)
{
	struct row_stream *s = u;
	int r = stream_flush(s);
	if (r != 0)
		return r;

	Mperf__Loss loss[N_LOSSES], *losses[N_LOSSES];
	for (uint32_t i = 0; i < p->n_losses; i++) {
		mperf__loss__init(&loss[i]);
		loss[i].cause = (char *)p->loss[i].cause;
		loss[i].count = p->loss[i].count;
		loss[i].samples = p->loss[i].samples;
		losses[i] = &loss[i];
	}
	Mperf__Provenance message = MPERF__PROVENANCE__INIT;
	message.event = (char *)(p->event ? p->event : "");
	message.rung = (char *)(p->rung ? p->rung : "");
	message.switches = (char *)(p->switches ? p->switches : "");
	message.hz = p->hz;
	message.period = p->period;
	message.samples = p->samples;
	message.loss = losses;
	message.n_loss = p->n_losses;
	message.named_share = p->named_share;
	message.placed_share = p->placed_share;
	message.look_every = p->look_every_s;
	message.has_waiting = p->has_waiting;
	Mperf__Wall wall = MPERF__WALL__INIT;
	if (p->wall) {
		wall.busy = p->wall->busy;
		wall.least = p->wall->least;
		wall.most = p->wall->most;
		wall.cpu = p->wall->cpu;
		message.wall = &wall;
	}
	message.coming_share = p->coming_share;
	message.seconds = p->seconds;
	message.cost_share = p->cost_share;
	message.uncounted_share = p->uncounted_share;
	Mperf__Threads threads = MPERF__THREADS__INIT;
	threads.lived = p->threads.lived;
	threads.ran = p->threads.ran;
	threads.ready = p->threads.ready;
	threads.unsplit = p->threads.unsplit;
	message.threads = p->threads.lived > 0 ? &threads : NULL;
	message.note = (char **)p->note;
	message.n_note = p->n_notes;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_PROVENANCE;
	a.provenance = &message;
	return send_answer(s->request, &a);
}

static int stream_table(void *u, const char *name)
{
	struct row_stream *s = u;
	if (strlen(name) >= sizeof(s->table))
		return -EINVAL;
	int r = stream_flush(s);
	if (r == 0)
		memcpy(s->table, name, strlen(name) + 1);
	return r;
}

struct answer row_stream_answer(struct row_stream *s, struct request *q)
{
	*s = (struct row_stream){.request = q};
	return (struct answer){
		.columns = stream_columns,
		.row = stream_row,
		.provenance = stream_provenance,
		.userdata = s,
		.table = stream_table,
	};
}

int row_stream_done(struct row_stream *s, int r)
{
	int ended = row_stream_end(s);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = request_done(s->request, 0);
	return r < 0 ? r : 0;
}

int row_stream_table(struct row_stream *s, const char *name)
{
	return stream_table(s, name);
}

int row_stream_end(struct row_stream *s)
{
	int r = stream_flush(s);
	free(s->row);
	s->row = NULL;
	s->size = 0;
	return r;
}
