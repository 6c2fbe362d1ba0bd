/* SPDX-License-Identifier: MIT */
/*
 * apart.h - work that may be kept waiting, done by a child that can be killed
 */
#ifndef JAIL_INIT_APART_H
#define JAIL_INIT_APART_H

#include <stdint.h>

/* What `work` returns, a number that is not negative; -1 when it did not return
 * in time. Nothing that it writes is kept. */
int64_t apart_do(int64_t (*work)(void *), void *arg, int timeout_ms);

#endif
