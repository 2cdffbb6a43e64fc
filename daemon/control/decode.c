/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * list --decode: a raw code by the fields that the platform database has for this machine's cores. Nothing
 * is opened.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/control/decode.h"
#include "daemon/control/peer.h"
#include "daemon/pmu/event/place.h"
#include "platform-db/selector.h"

static const struct answer_column columns[] = {
	{"core", "core", MPERF__UNIT__UNIT_NONE},
	{"field", "field", MPERF__UNIT__UNIT_NONE},
	{"bits", "bits", MPERF__UNIT__UNIT_NONE},
	{"value", "value", MPERF__UNIT__UNIT_NONE},
	{"means", "means", MPERF__UNIT__UNIT_NONE},
	{"reason", "why it does not count", MPERF__UNIT__UNIT_NONE},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

struct decoding {
	const struct answer *answer;
	const struct platform *platform;
	uint64_t code;
	unsigned n_passed; /* bits that the kernel passes on */
};

static int send(const struct decoding *d, const char *field, uint64_t mask, uint64_t value,
	const char *means)
{
	char bits[SELECTOR_BITS_BYTES], number[24], reason[96] = "";
	bool drops = d->n_passed < 64 && (d->code & mask) >> d->n_passed;
	snprintf(number, sizeof(number), "0x%llx", (unsigned long long)value);
	if (drops)
		snprintf(reason, sizeof(reason),
			"this kernel passes bits %u-0 on, and refuses more", d->n_passed - 1);
	struct answer_value v[N_COLUMNS] = {
		{.kind = ANSWER_TEXT, .text = d->platform->title},
		{.kind = ANSWER_TEXT, .text = field},
		{.kind = ANSWER_TEXT, .text = selector_bits_say(mask, bits)},
		{.kind = ANSWER_TEXT, .text = number},
		{.kind = ANSWER_TEXT, .text = means},
		{.kind = ANSWER_TEXT, .text = reason},
	};
	return d->answer->row(d->answer->userdata, v, N_COLUMNS);
}

/* What the whole code is: events that have it, and expressions of events of a bank. */
static int send_whole(const struct decoding *d)
{
	char text[SELECTOR_TEXT_BYTES];
	const struct platform *p = d->platform;
	const char *bank;
	int r = 0;
	for (size_t i = 0; i < p->n_events && r == 0; i++)
		if (p->event[i].code == d->code && !p->event[i].config1)
			r = send(d, "code", UINT64_MAX, d->code, p->event[i].name);
	for (size_t i = 0; r == 0 && (bank = selector_bank(p, i)); i++)
		if (*selector_says(p, bank, d->code, text))
			r = send(d, "code", UINT64_MAX, d->code, text);
	return r;
}

/* Fields that are not 0, and what no field has. */
static int send_fields(const struct decoding *d)
{
	char means[SELECTOR_TEXT_BYTES];
	const struct platform *p = d->platform;
	uint64_t left = d->code;
	int r = 0;
	for (size_t i = 0; i < p->n_fields && r == 0; i++) {
		const struct platform_field *f = &p->field[i];
		uint64_t value = selector_value(f, d->code);
		left &= ~f->mask;
		if (value)
			r = send(d, f->name, f->mask, value, selector_means(p, f, d->code, means));
	}
	return r == 0 && left ? send(d, "no field", left, left, "") : r;
}

static int send_cores(struct request *q, const struct cores *cores, uint64_t code)
{
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	int r = answer.columns(answer.userdata, columns, N_COLUMNS);
	for (int h = cores_kind(cores, 0); h >= 0 && r == 0; h = cores_kind(cores, h + 1)) {
		const struct platform *p = cores_platform(cores, h);
		const struct decoding d = {&answer, p, code, event_raw_bits(&kernel_real, p)};
		r = p->n_fields ? send_whole(&d) : 0;
		if (r == 0 && p->n_fields)
			r = send_fields(&d);
	}
	int ended = row_stream_end(&stream);
	return r != 0 ? r : ended;
}

int control_decode(struct request *q, const char *text)
{
	struct machine machine;
	uint64_t code;
	const struct cores *cores = q->peer->options->cores;
	if (!selector_code_parse(text, &code))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Write it as -e takes it, such as r40000002007, or as 0x40000002007.",
			"'%.64s' is not a raw code", text);
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r < 0 ? r : 0;
	bool has_fields = false;
	for (int h = cores_kind(cores, 0); h >= 0; h = cores_kind(cores, h + 1))
		has_fields |= cores_platform(cores, h)->n_fields > 0;
	if (!has_fields)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"mperf-platforms(5) says how to describe them (quirk \"field\").",
			"no fields are known of the raw codes of this machine's cores (%s)",
			cores_platform(cores, 0)->title);
	r = send_cores(q, cores, code);
	return r == 0 ? request_done(q, 0) : r;
}
