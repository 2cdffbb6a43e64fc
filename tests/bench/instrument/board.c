/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "board.h"

int board_rounds;

void initialise_board(void);
void start_trigger(void);
void stop_trigger(void);

void initialise_board(void)
{
	const char *rounds = getenv("BOARD_ROUNDS");
	board_rounds = rounds ? atoi(rounds) : 1;
}

void start_trigger(void)
{
}

void stop_trigger(void)
{
}
