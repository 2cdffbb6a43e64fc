/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Versions: which code was at an address of generated code, by time
 *
 * A compiler puts new code where other code was. Each such change begins a new version of its
 * addresses, and a frame is (file, address, version). Version 0 is what was there when the file was
 * first read, or first described the address; of a file with times, when it was first sampled.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct file_table;

/* Ranges with versions of their own, and changes that are known and not in force yet, of one file. At more, or
 * over the user's quota, all of the file becomes one new version at once: samples since the last look may get its
 * names, and what was not changed has two frames. */
#define VERSIONS_MAX 1024u

/* From then on [start, end) is another version, which is greater than all before. */
struct version_change {
	uint64_t start, end;
	uint64_t from_ns; /* CLOCK_MONOTONIC */
	uint32_t version;
};

/* Enter changes, in order. What they take is charged to the file's user. */
void versions_change(
	struct file_table *t, struct file *file, const struct version_change *c, size_t n);
/* All addresses have that version now. */
void versions_change_all(struct file *file, uint32_t version);

/* The version of an address at a time, which is not before that of the last call: changes up to it come
 * into force. 0: no time, those that are in force. */
uint32_t version_at(struct file_table *t, struct file *file, uint64_t addr, uint64_t time_ns);

struct versions *versions_free(struct versions *v);
