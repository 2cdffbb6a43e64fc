/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events by the fields of a core's raw codes, where the platform database has them:
 *
 *      backend:INST_SPEC+RECOVERY_BUBBLE    an expression of events of a bank of counters
 *      xs/backend/INST_SPEC+RECOVERY_BUBBLE/
 *      xs/EVENT0=7,EVENT1=8,OP_TYPE0=ADD/   the fields themselves
 *
 * Linux does not pass on all bits of a code. A code with dropped bits would count something else, so we refuse
 * it here. Source: pmu_sbi_event_map() of drivers/perf/riscv_pmu_sbi.c, Linux 6.12 (48 bits) and
 * 6.18 (56 with SBI 3.0), whose format file says which; the inhibit bits it sets itself, by the modes that
 * the event excludes.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event_on_core.h"
#include "daemon/pmu/event/event_private.h"
#include "platform-db/selector.h"

#define FORMAT_PATH "/sys/bus/event_source/devices/cpu/format/event"
#define PASSED_BITS 48     /* by every kernel */
#define PASSED_BITS_MAX 56 /* by any */

/* The platform of the first kind of core whose fields have that name, or NULL. */
static const struct platform *find_selector(const struct event_scan *s, struct event_word name)
{
	char text[EVENT_NAME_BYTES_MAX];
	if (!event_word_copy(name, text, sizeof(text)))
		return NULL;
	for (int h = cores_kind(s->cores, 0); h >= 0; h = cores_kind(s->cores, h + 1)) {
		const struct platform *p = cores_platform(s->cores, h);
		if (*p->selector && strcasecmp(p->selector, text) == 0)
			return p;
	}
	return NULL;
}

static const struct platform *find_bank(const struct event_scan *s, struct event_word bank)
{
	char text[EVENT_NAME_BYTES_MAX];
	if (!event_word_copy(bank, text, sizeof(text)))
		return NULL;
	for (int h = cores_kind(s->cores, 0); h >= 0; h = cores_kind(s->cores, h + 1))
		if (selector_has_bank(cores_platform(s->cores, h), text))
			return cores_platform(s->cores, h);
	return NULL;
}

bool event_selector_is(const struct event_scan *s, struct event_word name)
{
	return find_selector(s, name) != NULL;
}

bool event_bank_is(const struct event_scan *s, struct event_word bank)
{
	return find_bank(s, bank) != NULL;
}

/* --- what the kernel passes on ---------------------------------------------------------------- */

unsigned event_raw_bits(const struct kernel *k, const struct platform *p)
{
	char text[64];
	unsigned last;
	if (p->arch != PLATFORM_ARCH_RISCV)
		return 64;
	if (k->read_text(k->userdata, FORMAT_PATH, text, sizeof(text)) < 0 ||
		sscanf(text, "config:0-%u", &last) != 1 || last < PASSED_BITS - 1)
		return PASSED_BITS;
	return last < PASSED_BITS_MAX ? last + 1 : PASSED_BITS_MAX;
}

static int check_bits(
	const struct event_scan *s, const struct platform *p, const char *at, uint64_t code)
{
	unsigned n = event_raw_bits(s->kernel, p);
	char bits[SELECTOR_BITS_BYTES];
	if (n == 64 || code >> n == 0)
		return 0;
	unsigned bit = (unsigned)__builtin_ctzll(code >> n << n);
	const struct platform_field *f = selector_field_of(p, bit);
	const char *name = f ? f->name : "this code";
	selector_bits_say(f ? f->mask : UINT64_C(1) << bit, bits);
	if (f && f->kind == PLATFORM_FIELD_INHIBIT)
		return event_fail(s, EVENT_MALFORMED, at,
			"%s (bit %s) never reaches the counter, since Linux sets these bits "
			"itself: use the modifiers u and k to exclude modes",
			name, bits);
	if (bit >= PASSED_BITS_MAX)
		return event_fail(s, EVENT_MALFORMED, at,
			"%s needs bits %s of the code, but Linux passes none above %d", name, bits,
			PASSED_BITS_MAX - 1);
	return event_fail(s, EVENT_MALFORMED, at,
		"%s needs bits %s of the code, but this kernel passes only %u-0 (%d-0 from Linux "
		"6.18 on, with SBI 3.0): combine two events, or count each one separately",
		name, bits, n - 1, PASSED_BITS_MAX - 1);
}

static int set_code(const struct event_scan *s, const struct platform *p, const char *at,
	uint64_t code, struct event *e)
{
	int r = check_bits(s, p, at, code);
	if (r != 0)
		return r;
	if (code == 0)
		return event_fail(s, EVENT_MALFORMED, at, "code 0 counts nothing");
	e->type = PERF_TYPE_RAW;
	e->config = code;
	snprintf(e->pmu, sizeof(e->pmu), "raw");
	return 0;
}

/* --- the forms -------------------------------------------------------------------------------- */

static int no_copy(const struct event_scan *s, struct event_word w)
{
	return event_fail(s, EVENT_MALFORMED, w.start,
		"one operand of an event has at most %d bytes", EVENT_NAME_BYTES_MAX - 1);
}

static int compose(const struct event_scan *s, const struct platform *p, struct event_word bank,
	struct event_word expression, struct event *e)
{
	char bank_text[EVENT_NAME_BYTES_MAX], text[EVENT_NAME_BYTES_MAX];
	struct selector_error error = {0, ""};
	struct selector_code code;
	if (!event_word_copy(bank, bank_text, sizeof(bank_text)))
		return no_copy(s, bank);
	if (!event_word_copy(expression, text, sizeof(text)))
		return no_copy(s, expression);
	int r = selector_compose(p, bank_text, text, &code, &error);
	if (r != 0)
		return event_fail(
			s, EVENT_MALFORMED, expression.start + error.at, "%s", error.text);
	e->counters = code.counters;
	return set_code(s, p, expression.start, code.code, e);
}

int event_bank_parse(const struct event_scan *s, struct event_word bank,
	struct event_word expression, struct event *e)
{
	int r = compose(s, find_bank(s, bank), bank, expression, e);
	e->by_bank = r == 0;
	return r;
}

/* "EVENT0=7" */
static int take_field(const struct event_scan *s, const struct platform *p, struct event_word term,
	uint64_t *code)
{
	char text[EVENT_NAME_BYTES_MAX];
	struct selector_error error = {0, ""};
	if (!event_word_copy(term, text, sizeof(text)))
		return no_copy(s, term);
	char *equals = strchr(text, '=');
	if (!equals)
		return event_fail(s, EVENT_MALFORMED, term.start,
			"'%.40s' gives no field a value, such as %s=1", text, p->field[0].name);
	*equals = '\0';
	if (selector_set(p, text, equals + 1, code, &error) != 0)
		return event_fail(s, EVENT_MALFORMED, term.start, "%s", error.text);
	return 0;
}

static int take_fields(const struct event_scan *s, const struct platform *p,
	struct event_word terms, struct event *e)
{
	uint64_t code = 0;
	for (struct event_word rest = terms, term;;
		rest = (struct event_word){term.start + term.n + 1, rest.n - term.n - 1}) {
		const char *comma = memchr(rest.start, ',', rest.n);
		term = (struct event_word){
			rest.start, comma ? (size_t)(comma - rest.start) : rest.n};
		int r = take_field(s, p, term, &code);
		if (r != 0)
			return r;
		if (!comma)
			break;
	}
	return set_code(s, p, terms.start, code, e);
}

int event_selector_parse(const struct event_scan *s, struct event_word selector,
	struct event_word first, struct event_word second, struct event *e)
{
	const struct platform *p = find_selector(s, selector);
	return second.start ? compose(s, p, first, second, e) : take_fields(s, p, first, e);
}
