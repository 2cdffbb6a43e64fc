/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The file that the kernel's records would name for this descriptor
 *
 * Records of mappings have device, inode and generation of the file system's own superblock. stat gives what
 * the file system chooses: on btrfs a device per subvolume, on an overlay one per layer, or inode numbers
 * with the layer in their highest bits. Kernels also differ in which of the two an overlay's records have.
 * So we map the file once, and read the kernel's record of this mapping.
 */

#include <stdbool.h>
#include <stdint.h>

struct mapped_file {
	uint32_t major, minor;
	uint64_t inode;
	uint64_t generation; /* 0: the file system has none */
};

struct mapped;

/* Open an event of our own on this thread, for its own mappings. 0; negative: the kernel refuses it. */
int mapped_new(struct mapped **ret_mapped);
/* Exported for tests. */
struct mapped *mapped_free(struct mapped *m);

/* Map the file behind fd, which must be readable, and see what the kernel calls it. 0, or -errno: it cannot be
 * mapped, or no record came. Two system calls; does not read the file. */
int mapped_ask(struct mapped *m, int fd, struct mapped_file *ret_file);
