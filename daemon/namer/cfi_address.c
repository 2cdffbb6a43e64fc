/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/cfi_address.h"

#include <dwarf.h>

size_t cfi_encoded_bytes(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return 8;
	case DW_EH_PE_udata4:
	case DW_EH_PE_sdata4:
		return 4;
	case DW_EH_PE_udata2:
	case DW_EH_PE_sdata2:
		return 2;
	default:
		return 0;
	}
}

uint64_t cfi_read_encoded(struct byte_reader *r, uint8_t encoding)
{
	const size_t n = cfi_encoded_bytes(encoding);
	uint64_t value = read_number(r, n);

	if (encoding & DW_EH_PE_signed && n < 8) {
		const uint64_t sign = 1ull << (8 * n - 1);
		value = (value ^ sign) - sign;
	}
	return value;
}

uint64_t cfi_read_address(struct byte_reader *r, const struct unwind_section *s, uint8_t encoding)
{
	const uint64_t here = s->addr + (uint64_t)(r->at - (const uint8_t *)s->data->d_buf);
	const uint64_t value = cfi_read_encoded(r, encoding);

	return (encoding & 0x70) == DW_EH_PE_pcrel ? value + here : value;
}

bool cfi_can_read(uint8_t encoding)
{
	const uint8_t relative = encoding & 0x70;

	return cfi_encoded_bytes(encoding) && !(encoding & DW_EH_PE_indirect) &&
	       (relative == DW_EH_PE_absptr || relative == DW_EH_PE_pcrel);
}
