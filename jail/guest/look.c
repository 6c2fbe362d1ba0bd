/* SPDX-License-Identifier: MIT */
/*
 * look.c - whether dictionaries are as they were, for mend.py
 *
 * Runs in:   the guest; part of the library that park.py loads
 * Trusts:    nothing, and is not trusted: it can do what the guest can
 * Leaves:    every page as it is
 *
 * Python counts references to what it looks at. To look at all builtins after
 * each cell would write to some fifty pages, and each would be copied for the
 * last checkpoint: that took 0.25 ms a cell. Here only addresses are compared.
 */
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))

/* Of Python's C API; Python.h is not needed for it. */
int PyDict_Next(void *dict, ssize_t *at, void **key, void **value);

EXPORT int look_note(int first, void *names, void *was);
EXPORT int look_same(void);

#define PLACES 4
#define NAMES 512

static struct {
	void *names; /* borrowed, as all that is noted: mend.py keeps it */
	ssize_t n;
	void *was[NAMES][2];
} noted[PLACES];
static int places;

/* Note what look_same() is to find in `names`: all that is in `was`, in this
 * order. The first place forgets those before. 0, or -1: there are too many. */
int look_note(int first, void *names, void *was)
{
	ssize_t at = 0, n = 0;

	places = first ? 0 : places;
	if (places == PLACES)
		return -1;
	noted[places].names = names;
	while (n < NAMES && PyDict_Next(was, &at, &noted[places].was[n][0],
				    &noted[places].was[n][1]))
		n++;
	noted[places++].n = n;
	return n < NAMES ? 0 : -1;
}

/* True if each place has what was noted; it may have more. */
int look_same(void)
{
	void *key, *value;

	for (int i = 0; i < places; i++) {
		ssize_t at = 0, n = 0;

		while (n < noted[i].n &&
			PyDict_Next(noted[i].names, &at, &key, &value))
			n += key == noted[i].was[n][0] &&
			     value == noted[i].was[n][1];
		if (n < noted[i].n)
			return 0;
	}
	return places > 0;
}
