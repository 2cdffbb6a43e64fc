/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Marks for a sweep of attribute's tables: what windows and stacks refer to. */

#include "daemon/aggregate/window.h"
#include "daemon/attribute/sweep.h"

/* The tasks of all rows. */
void window_keep(const struct window *w, struct sweep *s);
/* The frames of all nodes. */
void stack_tree_keep(const struct stack_tree *t, struct sweep *s);
