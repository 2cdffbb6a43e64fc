/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Commands: each takes its options and returns mperfctl's exit status */

struct options;

#define COMMAND(id, name, summary) int client_##name(const struct options *o);
#include "proto/command.inc"
#undef COMMAND
