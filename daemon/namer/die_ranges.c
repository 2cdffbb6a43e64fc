/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* libdw reads the ranges of an entry. For a split unit it needs the skeleton, which it finds only for
 * files that it opened itself, so we read lists of ranges of split units here. A single range, by
 * DW_AT_low_pc and DW_AT_high_pc, needs only the addresses.
 *
 * Source: DWARF 5, sections 2.17.3 and 7.25; DWARF 4, section 2.17.3; "DebugFission" of GCC's wiki.
 */

#include "daemon/namer/die_ranges.h"

#include <dwarf.h>

/* The beginning of list i of a section. The section has one table; its offsets count from the end of the
 * table's header. */
static struct byte_reader numbered_list(struct section_bytes lists, uint64_t i)
{
	struct byte_reader r = bytes_from(lists, 0);
	size_t n = 4;

	if (read_number(&r, 4) == UINT32_MAX) { /* 64-bit DWARF */
		n = 8;
		read_past(&r, 8);
	}
	read_past(&r, 4); /* version, sizes of addresses and of segments */
	uint64_t n_lists = read_number(&r, 4), first = (uint64_t)(r.at - lists.at);
	r.bad |= i >= n_lists || n_lists > lists.n;
	read_past(&r, i * n);
	uint64_t offset = read_number(&r, n);
	r.bad |= offset > lists.n;
	return r.bad ? r : bytes_from(lists, first + offset);
}

/* The list that an attribute refers to by offset or by number; not every libdw resolves the
 * number. */
static struct byte_reader list_of(const struct range_source *s, Dwarf_Attribute *a)
{
	Dwarf_Word value;

	if (!a || dwarf_formudata(a, &value) != 0)
		return (struct byte_reader){.bad = true};
	return a->form == DW_FORM_rnglistx ? numbered_list(s->lists, value)
					   : bytes_from(s->lists, value);
}

struct die_ranges die_ranges_of(Dwarf_Die *die, const struct range_source *apart)
{
	struct die_ranges w = {.die = die};
	Dwarf_Attribute a;

	if (!apart || !dwarf_hasattr(die, DW_AT_ranges))
		return w;
	w.apart = apart;
	w.base = apart->base;
	w.list = list_of(apart, dwarf_attr(die, DW_AT_ranges, &a));
	return w;
}

/* An address by its number. */
static uint64_t address_of(struct die_ranges *w, uint64_t number)
{
	const struct range_source *a = w->apart;
	struct byte_reader r = {.bad = true};

	if (number < a->addresses.n / a->address_bytes)
		r = bytes_from(a->addresses, number * a->address_bytes);
	uint64_t addr = read_number(&r, a->address_bytes);
	w->list.bad |= r.bad;
	return addr;
}

static bool next_old(struct die_ranges *w, uint64_t *ret_start, uint64_t *ret_end)
{
	const size_t n = w->apart->address_bytes;
	const uint64_t is_base = n == 4 ? UINT32_MAX : UINT64_MAX;

	for (;;) {
		uint64_t start = read_number(&w->list, n), end = read_number(&w->list, n);
		if (w->list.bad || (start == 0 && end == 0))
			return false;
		if (start == is_base) {
			w->base = end;
			continue;
		}
		*ret_start = w->base + start;
		*ret_end = w->base + end;
		return true;
	}
}

/* Read an entry of a list. False: it is no range. */
static bool read_entry(struct die_ranges *w, uint64_t kind, uint64_t *ret_start, uint64_t *ret_end)
{
	struct byte_reader *r = &w->list;
	const size_t n = w->apart->address_bytes;

	switch (kind) {
	case DW_RLE_base_addressx:
		w->base = address_of(w, read_unsigned(r));
		return false;
	case DW_RLE_base_address:
		w->base = read_number(r, n);
		return false;
	case DW_RLE_startx_endx:
		*ret_start = address_of(w, read_unsigned(r));
		*ret_end = address_of(w, read_unsigned(r));
		return true;
	case DW_RLE_startx_length:
		*ret_start = address_of(w, read_unsigned(r));
		*ret_end = *ret_start + read_unsigned(r);
		return true;
	case DW_RLE_offset_pair:
		*ret_start = w->base + read_unsigned(r);
		*ret_end = w->base + read_unsigned(r);
		return true;
	case DW_RLE_start_end:
		*ret_start = read_number(r, n);
		*ret_end = read_number(r, n);
		return true;
	case DW_RLE_start_length:
		*ret_start = read_number(r, n);
		*ret_end = *ret_start + read_unsigned(r);
		return true;
	}
	r->bad = true; /* the end, or unknown */
	return false;
}

bool die_ranges_next(struct die_ranges *w, uint64_t *ret_start, uint64_t *ret_end)
{
	if (!w->apart) {
		Dwarf_Addr base;
		ptrdiff_t next = dwarf_ranges(w->die, w->at, &base, ret_start, ret_end);
		if (next <= 0 || (next != 1 && next <= w->at))
			return false;
		w->at = next;
		return true;
	}
	if (w->apart->version < 5)
		return next_old(w, ret_start, ret_end);
	while (!w->list.bad)
		if (read_entry(w, read_number(&w->list, 1), ret_start, ret_end))
			return !w->list.bad;
	return false;
}

bool die_covers(Dwarf_Die *die, const struct range_source *apart, uint64_t addr)
{
	struct die_ranges w = die_ranges_of(die, apart);
	uint64_t start, end;

	if (!w.apart)
		return dwarf_haspc(die, addr) > 0;
	while (die_ranges_next(&w, &start, &end))
		if (addr >= start && addr < end)
			return true;
	return false;
}
