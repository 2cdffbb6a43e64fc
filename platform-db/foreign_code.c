/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Codes of events in a row of a third-party file: the number that selects the event, on x86 with
 * the mask and other bits around it, and for some events a second register.
 *
 * Source: jevents.py of Linux 6.1 and 6.12 for how a code is put together.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "platform-db/foreign.h"

/* A number as text or as itself; of a list such as "0xD0,0xD1" the first. False: not there, or
 * not a number. */
static bool number_of(const struct node *row, const char *key, uint64_t *ret_number)
{
	char first[32];
	const struct node *v = node_get(row, key);
	if (v && v->type == NODE_WHOLE && v->whole >= 0) {
		*ret_number = (uint64_t)v->whole;
		return true;
	}
	if (!v || v->type != NODE_TEXT)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(v->text, ", "), v->text);
	return code_parse(first, ret_number);
}

/* Bits of x86's event selector other than the event code. Source: Intel SDM volume 3B,
 * IA32_PERFEVTSELx; AMD APM volume 2, PerfEvtSel; format of /sys/bus/event_source/devices/cpu. */
static uint64_t selector_bits(const struct node *row)
{
	static const struct {
		const char *key;
		uint64_t max;
		int shift;
	} bits[] = {
		{"UMask", 0xff, 8},
		{"EdgeDetect", 1, 18},
		{"AnyThread", 1, 21},
		{"Invert", 1, 23},
		{"CounterMask", 0xff, 24},
	};
	uint64_t code = 0, number;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (number_of(row, bits[i].key, &number))
			code |= (number & bits[i].max) << bits[i].shift;
	return code;
}

/* Events on x86's fixed counters, whose rows have no code or not the kernel's. Source: "fixed" in
 * jevents.py of Linux 6.1. */
static bool fixed_code(const char *name, uint64_t *ret_code)
{
	static const struct {
		const char *name;
		uint64_t code;
	} fixed[] = {
		{"INST_RETIRED.ANY", 0xc0},
		{"INST_RETIRED.ANY_P", 0xc0},
		{"CPU_CLK_UNHALTED.REF", 0x300},
		{"CPU_CLK_UNHALTED.THREAD", 0x3c},
		{"CPU_CLK_UNHALTED.CORE", 0x3c},
		{"CPU_CLK_UNHALTED.THREAD_ANY", 0x3c | 1u << 21},
	};
	for (size_t i = 0; name && i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (strcasecmp(name, fixed[i].name) == 0) {
			*ret_code = fixed[i].code;
			return true;
		}
	return false;
}

/* The register of a precise or offcore event: the driver writes config1 to it. Source: "msrmap" in
 * jevents.py of Linux 6.1. False: the register is unknown. */
static bool take_register(const struct node *row, uint64_t *ret_config1)
{
	uint64_t index, value;
	if (!number_of(row, "MSRIndex", &index) || index == 0)
		return true;
	if (index != 0x1a6 && index != 0x1a7 && index != 0x3f6 && index != 0x3f7)
		return false;
	if (number_of(row, "MSRValue", &value))
		*ret_config1 = value;
	return true;
}

static bool take_code(const struct node *row, enum platform_arch arch, uint64_t *ret_code)
{
	uint64_t code;
	if (number_of(row, "ConfigCode", &code)) {
		*ret_code = code;
		return true;
	}
	if (fixed_code(foreign_text(row, "EventName"), ret_code))
		return true;
	if (number_of(row, "EventCode", &code) || number_of(row, "Event Code", &code)) {
		/* AMD's codes have twelve bits, of which the register has four at 32. */
		if (arch == PLATFORM_ARCH_X86)
			code = (code & 0xff) | (code >> 8 & 0xf) << 32;
		*ret_code = code | selector_bits(row);
		return true;
	}
	/* The code of event 0 by its mask, as in jevents.py. */
	code = selector_bits(row);
	if (code == 0)
		return false;
	*ret_code = code;
	return true;
}

int foreign_code(const struct reader *r, const struct node *row, enum platform_arch arch,
	bool needs_code, struct platform_event *e)
{
	const char *name = foreign_text(row, "EventName");
	if (!name)
		name = foreign_text(row, "Event Name");
	if (!name)
		name = e->name;
	if (!take_code(row, arch, &e->code) && needs_code)
		return reader_wrong(
			r, row->line, "the event %.64s has no EventCode or ConfigCode", name);
	if (!take_register(row, &e->config1))
		return reader_wrong(r, row->line,
			"the event %.64s needs a register that is not known: 'MSRIndex'", name);
	return 0;
}
