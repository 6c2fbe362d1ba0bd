/* SPDX-License-Identifier: MIT */
/*
 * person.h - who started us
 */
#ifndef REPL_PERSON_H
#define REPL_PERSON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PERSON_GROUPS_MAX 256

/* Strings are owned, and NULL where there is no password entry. */
struct person {
	char *name, *shell;
	char *account_home; /* of the password entry */
	char *home;	    /* of the environment, where that may say so */
	char *groups[PERSON_GROUPS_MAX];
	size_t n_groups;
	char config_file[PATH_MAX];
	char state_dir[PATH_MAX];
};

/* Read the password entry. */
void person_find(struct person *p);
void person_free(struct person *p);

/* Somebody who is no login may have another home for now: HOME, if that is an
 * absolute path. */
void person_prefer_home(struct person *p, const char *home);

/* Find the names of the groups. That asks the name service, so nothing is done
 * where no configuration for groups exists. */
void person_find_groups(struct person *p);

/* Whether the shell of the password entry is this program. */
bool person_shell_is_us(const struct person *p);

#endif
