/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/kernel/quiet_bpf.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stddef.h>

void bpf_be_quiet(void)
{
	libbpf_set_print(NULL);
}
