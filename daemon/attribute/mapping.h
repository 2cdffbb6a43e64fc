/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Mappings: what the name of a mapping says of the code in it
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/attribute/file.h"

/* The kind of file behind an executable mapping of that name, as MMAP2 records and maps write it.
 * FILE_PERF_MAP: memory that the process filled itself. FILE_JITDUMP: not code, but the sign that
 * the process describes its own in that file. A build id shows a real file, whatever its name. */
enum file_kind mapping_kind(const char *path, uint8_t n_build_id);
