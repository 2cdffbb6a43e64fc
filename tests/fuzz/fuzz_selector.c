/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as an expression of events, as a field and its value, and as a code to decode, on a core whose
 * codes have fields. A refusal names a place in the text, in one line; decoding the code of an accepted
 * expression gives an expression of the same code.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/selector.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define EVENT(name, topic, code)                                                                   \
	{name, topic, "", NULL, 0, code, 0, 0xff, false, {"s", "no", "f", 1}}

static const struct platform_event events[] = {
	EVENT("a", "one", 1),
	EVENT("b", "one", 2),
	EVENT("a.long-name", "one", 3),
	EVENT("both", "one", 0x10201),
	EVENT("c", "two", 1),
	EVENT("d", "two", 63),
};
static const struct platform_field_value operations[] = {
	{"OR", 0}, {"AND", 1}, {"XOR", 2}, {"ADD", 3}};
static const struct platform_field fields[] = {
	{"E0", PLATFORM_FIELD_EVENT, 0x3f, "", NULL, 0, {-1, -1}, {"s", "no", "f", 1}},
	{"E1", PLATFORM_FIELD_EVENT, 0x3f << 8, "", NULL, 0, {-1, -1}, {"s", "no", "f", 1}},
	{"E2", PLATFORM_FIELD_EVENT, 0x3f << 16, "", NULL, 0, {-1, -1}, {"s", "no", "f", 1}},
	{"O0", PLATFORM_FIELD_OPERATION, UINT64_C(3) << 32, "", operations, 4, {0, 1},
		{"s", "no", "f", 1}},
	{"O1", PLATFORM_FIELD_OPERATION, UINT64_C(9) << 40, "", operations, 4, {3, 2},
		{"s", "no", "f", 1}},
	{"bits", PLATFORM_FIELD_SET, UINT64_C(0xff) << 48, "", NULL, 0, {-1, -1},
		{"s", "no", "f", 1}},
	{"no", PLATFORM_FIELD_INHIBIT, UINT64_C(1) << 63, "not", NULL, 0, {-1, -1},
		{"s", "no", "f", 1}},
};
static const struct platform core = {.name = "core",
	.title = "Core",
	.event = events,
	.n_events = N(events),
	.selector = "x",
	.field = fields,
	.n_fields = N(fields)};

static void must_say(const struct selector_error *e, size_t n)
{
	if (e->at > n || !*e->text || strlen(e->text) >= sizeof(e->text))
		abort();
}

static void try_expression(const char *bank, const char *text)
{
	struct selector_code code = {0, 0}, again = {0, 0};
	struct selector_error error = {0, ""};
	char said[SELECTOR_TEXT_BYTES];
	if (selector_compose(&core, bank, text, &code, &error) != 0) {
		must_say(&error, strlen(text));
		return;
	}
	if (code.counters != 0xff && code.counters != 0)
		abort();
	/* An event given by its number may have no name; then the code has no expression. */
	if (!*selector_says(&core, bank, code.code, said))
		return;
	if (selector_compose(&core, bank, said + strlen(bank) + 1, &again, &error) != 0 ||
		again.code != code.code)
		abort();
}

static void try_field(char *text)
{
	struct selector_error error = {0, ""};
	uint64_t code = 0;
	char *equals = strchr(text, '=');
	if (!equals)
		return;
	*equals = '\0';
	if (selector_set(&core, text, equals + 1, &code, &error) != 0)
		must_say(&error, strlen(text));
}

static void try_code(uint64_t code)
{
	char text[SELECTOR_TEXT_BYTES], bits[SELECTOR_BITS_BYTES];
	uint64_t left = code;
	for (size_t i = 0; i < N(fields); i++) {
		if (strlen(selector_means(&core, &fields[i], code, text)) >= sizeof(text))
			abort();
		left &= ~fields[i].mask;
	}
	selector_bits_say(left, bits);
	for (size_t i = 0; selector_bank(&core, i); i++)
		selector_says(&core, selector_bank(&core, i), code, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t code = 0;
	char *text = calloc(1, size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	memcpy(&code, data, size < sizeof(code) ? size : sizeof(code));
	try_code(code);
	if (selector_code_parse(text, &code))
		try_code(code);
	try_expression("one", text);
	try_expression("two", text);
	try_field(text);
	free(text);
	return 0;
}
