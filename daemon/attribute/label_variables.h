/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Variables of the environment that are labels of a job
 *
 * "CI_JOB_ID,branch=GITHUB_REF_NAME": a variable is a label of its own name, or of another. Only these
 * are ever taken out of an environment. A variable is refused if its name suggests a secret.
 */

#include "proto/syntax/label.h"

#define LABEL_VARIABLES_MAX LABELS_MAX

struct label_variables {
	struct label_variable {
		char key[LABEL_KEY_BYTES_MAX + 1]; /* of the label */
		char name[LABEL_KEY_BYTES_MAX + 1];
	} variable[LABEL_VARIABLES_MAX];
	size_t n;
};

/* Parse a list, or "none". 0; LABELS_WRONG: a name is not one, is reserved or is there twice, holds a secret, or
 * there are too many; *ret is untouched then. */
int label_variables_parse(const char *text, struct label_variables *ret);
