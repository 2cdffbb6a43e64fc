/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Mappings: the kind of code behind the name of a mapping */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/naming/file.h"

/* For tests and fuzzers too: the kind of file behind an executable mapping of that name, as MMAP2 records and maps write it.
 * FILE_PERF_MAP: memory that the process filled itself. FILE_JITDUMP: not code, but a sign that the
 * process describes its generated code in that file. A mapping with a build id is a real file,
 * whatever its name. Exported for tests. */
enum file_kind mapping_kind(const char *path, uint8_t n_build_id);
