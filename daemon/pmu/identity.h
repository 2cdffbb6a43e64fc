/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The identity of each hart
 *
 * It comes from the identification registers of each hart, since harts may differ: riscv_hwprobe on
 * RISC-V, MIDR_EL1 in sysfs on Arm, and /proc/cpuinfo if these are missing and on x86, where the name of
 * the hart's PMU distinguishes kinds (hart_pmu.h). The device tree's compatible is added, since some
 * vendors use one identity for several cores.
 */

#include "daemon/kernel/kernel.h"
#include "daemon/kernel/machine.h"
#include "platform-db/platform.h"

/* Fill ret_identities[0 … m->n_harts). For a hart that is offline, or whose registers cannot be
 * read, only the architecture is set, and `read` is false; call again when it comes online.
 * Unreadable files are not an error. 0 or -ENOMEM. */
int identity_read(
	const struct kernel *k, const struct machine *m, struct platform_identity *ret_identities);
