/* SPDX-License-Identifier: MIT */
/* guest_pages.h - pages that the next cell would copy are copied before it */
#ifndef JAIL_GUEST_PAGES_H
#define JAIL_GUEST_PAGES_H

/* Before a fork: remember which pages have been written since the last. */
void pages_note(void);

/* Some time behind it, while no cell waits: make these our own again. */
void pages_take(void);

#endif
