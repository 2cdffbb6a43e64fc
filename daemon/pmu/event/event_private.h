/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the parts of the event parser
 *
 * event.c parses the structure (lists, groups, modifiers); others resolve a single name: names.c
 * generic names, sysfs.c PMUs and tracepoints, platform.c names of the platform database, selector.c
 * codes by their fields. All of
 * them work on words (word.c) of the user's text, so that an error can name its column.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pmu/event/event.h"

/* A piece of the text, not terminated; borrowed. */
struct event_word {
	const char *start;
	size_t n;
};

struct event_scan {
	const struct kernel *kernel;
	const struct cores *cores; /* or NULL */
	const char *text;          /* the whole argument */
	/* position in text of the alias whose terms are parsed; NULL: parsing text itself */
	const char *pinned;
	struct event_error *error;
};

/* Write "column N: …" to the scan's error, with unprintable bytes replaced since the text is
 * untrusted, and return outcome. */
__attribute__((format(printf, 4, 5))) int event_fail(
	const struct event_scan *s, int outcome, const char *at, const char *format, ...);

bool event_word_is(struct event_word w, const char *text);

/* Copy to a terminated buffer. False if it does not fit. */
bool event_word_copy(struct event_word w, char *buffer, size_t size);

/* Only hexadecimal digits, without 0x. */
bool event_word_hex(struct event_word w, uint64_t *ret_number);

/* "12" or "0x1f", nothing else, within 64 bits. */
bool event_word_number(struct event_word w, uint64_t *ret_number);

/* Set pmu, type and config of *e from a generic name, alias or cache event; false if it is none. */
bool event_generic_find(struct event_word name, struct event *e);

/* The same from a name that one of this machine's platforms has. */
bool event_platform_find(const struct event_scan *s, struct event_word name, struct event *e);

/* The same from a name that means a generic event only on this machine's architecture. */
bool event_arch_find(const struct event_scan *s, struct event_word name, struct event *e);

/* Do the codes of a core of this machine have fields of that name: "xs" of xs/EVENT0=7/? */
bool event_selector_is(const struct event_scan *s, struct event_word name);
/* Does a core of this machine combine events of that bank of counters: "backend"? */
bool event_bank_is(const struct event_scan *s, struct event_word bank);

/* Set pmu, type and config of *e from an expression of events of an existing bank. 0, EVENT_*. */
int event_bank_parse(const struct event_scan *s, struct event_word bank,
	struct event_word expression, struct event *e);
/* The same from the text between the slashes after an existing selector: fields, or, with `second`,
 * a bank and an expression. */
int event_selector_parse(const struct event_scan *s, struct event_word selector,
	struct event_word first, struct event_word second, struct event *e);

/* Offer all names that event_platform_find knows to the spelling corrector. */
struct nearest;
void event_platform_offer(const struct event_scan *s, struct nearest *near);

/* Set pmu, type and configs of *e from a bare alias of sysfs that exactly one PMU has; false if it
 * is none. */
bool event_alias_find(const struct event_scan *s, struct event_word name, struct event *e);

/* Set pmu, type and configs of *e from the text before and between the slashes. 0, EVENT_*. */
int event_pmu_parse(const struct event_scan *s, struct event_word pmu, struct event_word terms,
	struct event *e);

/* Set pmu, type and config from tracefs. 0, EVENT_*. */
int event_tracepoint_parse(const struct event_scan *s, struct event_word subsystem,
	struct event_word name, struct event *e);
