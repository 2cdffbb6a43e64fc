/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Executable: memory of the executable itself, which dlclose never unmaps */

#include <stdbool.h>
#include <stddef.h>

/* Is that ELF header in memory the executable's? NULL is not. */
bool mperf_executable_is(const void *elf);

/* Are these bytes part of it and never written to? Linear in its program headers, without system calls. */
bool mperf_executable_constant(const void *at, size_t bytes);
