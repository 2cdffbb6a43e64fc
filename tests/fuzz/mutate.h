/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Damage that passes the first checks
 *
 * Each function changes a whole file where its format says that something is: a field of a header,
 * a section, a page, a line. What does not parse as that format is damaged anywhere. They serve
 * libFuzzer (LLVMFuzzerCustomMutator) and the fuzzer of the whole namer alike.
 *
 * data holds n bytes and has room for `room`; the same seed makes the same damage. Returns the
 * new number of bytes, from 1 to room.
 */

#include <stddef.h>
#include <stdint.h>

typedef size_t mutate_function(uint8_t *data, size_t n, size_t room, uint64_t seed);

/* Headers, section headers, and what sections hold. 64 bits, little endian; others: anywhere.
 * Source: man 5 elf */
mutate_function mutate_elf;
/* Pages, their headers, cell pointers, records.
 * Source: https://www.sqlite.org/fileformat2.html */
mutate_function mutate_sqlite;
/* Records and their fields.
 * Source: Linux tools/perf/Documentation/jitdump-specification.txt */
mutate_function mutate_jitdump;
/* Lines of words and hexadecimal numbers, such as a perf map. */
mutate_function mutate_lines;

/* A number below `below`, or 0, from a seed that moves on. */
uint64_t mutate_any(uint64_t *seed, uint64_t below);

/* libFuzzer's own mutations half of the time, and these otherwise. */
#define MUTATE_ALSO_BY(by)                                                                         \
	size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t room);                             \
	size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed);       \
	size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t room, unsigned seed)        \
	{                                                                                          \
		return seed % 2 ? LLVMFuzzerMutate(data, n, room) : by(data, n, room, seed);       \
	}
