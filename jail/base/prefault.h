/* SPDX-License-Identifier: MIT */
/*
 * prefault.h - a process that waits has its pages before it needs them
 */
#ifndef JAIL_BASE_PREFAULT_H
#define JAIL_BASE_PREFAULT_H

/* madvise(2): map pages; and make them private. Newer than some headers. */
#define PREFAULT_READ 22
#define PREFAULT_WRITE 23

/*
 * Map all of our program and libraries, and make private what a fork left to be
 * copied: data, heap, and the next 32 KiB of the stack. Later accesses cost no
 * page faults, each of which is 1 microsecond, and 10 to 30 in some virtual
 * machines. Takes time: for a process that has nothing else to do. Without
 * MADV_POPULATE_* (before Linux 5.14) only the stack is touched.
 */
void prefault_own(void);

#endif
