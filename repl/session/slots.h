/* SPDX-License-Identifier: MIT */
/*
 * slots.h - how many sessions a person has at the same time
 */
#ifndef REPL_SESSION_SLOTS_H
#define REPL_SESSION_SLOTS_H

struct err;

/*
 * Take one of `most` places in the file `sessions` of the directory. Returns a
 * descriptor that holds it until it is closed or the process ends; -1 with e
 * (ERR_CONFIG) when all are taken, or when the file cannot be used.
 */
int slots_claim(const char *dir, int most, struct err *e);

#endif
