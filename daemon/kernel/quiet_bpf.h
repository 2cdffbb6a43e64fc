/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Discard libbpf's messages from now on: its callers explain its error numbers. Absent if built without BPF. */
void bpf_be_quiet(void);
