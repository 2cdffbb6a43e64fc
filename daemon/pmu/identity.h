/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Who each hart is
 *
 * Identification registers decide, asked of each hart by itself, since harts may differ: on RISC-V
 * riscv_hwprobe, on Arm MIDR_EL1 in sysfs, and /proc/cpuinfo where these are not there and on x86.
 * The device tree's compatible is added, since some vendors give several cores one identity.
 */

#include "daemon/pmu/kernel.h"
#include "daemon/pmu/machine.h"
#include "platform-db/platform.h"

/* Fill ret_identities[0 … m->n_harts). A hart that is offline, or whose registers nobody tells, has
 * its architecture and `read` false; ask again when it came online. What cannot be read is no
 * error. 0 or -ENOMEM. */
int identity_read(
	const struct kernel *k, const struct machine *m, struct platform_identity *ret_identities);
