/* SPDX-License-Identifier: MIT */
/*
 * pypaste.h - what pasted Python means
 *
 * Pure.
 */
#ifndef REPL_EDIT_PYPASTE_H
#define REPL_EDIT_PYPASTE_H

#include <stddef.h>
#include <wchar.h>

struct utf8_wide;

enum pypaste {
	PYPASTE_PLAIN,	    /* itself */
	PYPASTE_TRANSCRIPT, /* the code behind its prompts */
	PYPASTE_INDENTED,   /* itself, further to the left */
};

/* Look at a paste. Where it begins with a prompt, `>>> ` or `In [1]: `, *out
 * gets the lines behind such prompts and behind those that continue them; all
 * other lines are output. Where all its lines are indented evenly, *out gets
 * them without that; what stands in strings is not touched. Otherwise, and
 * without memory: PYPASTE_PLAIN, and *out is empty. */
enum pypaste pypaste_read(const wchar_t *s, size_t n, struct utf8_wide *out);

#endif
