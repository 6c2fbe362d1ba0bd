/* SPDX-License-Identifier: MIT */
/*
 * copycost.h - what a page costs that a checkpoint makes the guest copy
 */
#ifndef JAIL_WARDEN_COPYCOST_H
#define JAIL_WARDEN_COPYCOST_H

#include <stdint.h>

/* Nanoseconds of CPU time for one page, on this host: measured at the first
 * call, which takes about a millisecond. Where nothing can be measured, what a
 * slow virtual machine takes. */
int64_t copycost_page_ns(void);

#endif
