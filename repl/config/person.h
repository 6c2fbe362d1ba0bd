/* SPDX-License-Identifier: MIT */
/*
 * person.h - an account of this host
 */
#ifndef REPL_CONFIG_PERSON_H
#define REPL_CONFIG_PERSON_H

#include <stddef.h>
#include <sys/types.h>

#define PERSON_GROUPS_MAX 256

/* Strings are owned, and NULL where there is no password entry. */
struct person {
	char *name, *shell;
	char *account_home; /* of the password entry */
	char *home;	    /* account_home, or of person_prefer_home() */
	char *groups[PERSON_GROUPS_MAX];
	size_t n_groups;
};

/* Look the account up. */
void person_find(struct person *p, uid_t uid);

/* Find the names of the groups, if there is a configuration for groups. */
void person_find_groups(struct person *p, uid_t uid);

/* Use `home` in place of the account's, if that is an absolute path. Only for a
 * run that is no login. */
void person_prefer_home(struct person *p, const char *home);

void person_free(struct person *p);

#endif
