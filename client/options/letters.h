/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Letters: a short name of each command's bit, for tables */

#include "client/options/table.h"

#define R COMMAND_BIT(RECORD)
#define H COMMAND_BIT(HOTSPOTS)
#define F COMMAND_BIT(FLAMEGRAPH)
#define S COMMAND_BIT(STAT)
#define L COMMAND_BIT(LIST)
#define D COMMAND_BIT(DOCTOR)
#define T COMMAND_BIT(TOP)
#define U COMMAND_BIT(STATUS)
#define K COMMAND_BIT(STORE)
#define O COMMAND_BIT(ROOFLINE)
#define B COMMAND_BIT(BLOCKS)
#define P COMMAND_BIT(PARALLEL)
#define M COMMAND_BIT(ROOFS)
#define W COMMAND_BIT(TOPDOWN)
#define C COMMAND_BIT(DIFF)
#define G COMMAND_BIT(GATE)
#define J COMMAND_BIT(JOB)
#define N COMMAND_BIT(TIMELINE)
#define X COMMAND_BIT(EXPORT)
#define E COMMAND_BIT(SCHEDULE)
#define A COMMAND_BIT(REPORT)
