/* SPDX-License-Identifier: MIT */
/*
 * person.c - an account of this host
 *
 * Runs in:   front end, first thing; maker, for each person who asks
 * Trusts:    the name service
 */
#include "person.h"

#include "config.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

void person_find(struct person *p, uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);

	if (!pw)
		return;
	p->name = strdup(pw->pw_name);
	p->account_home = strdup(pw->pw_dir);
	p->home = strdup(pw->pw_dir);
	p->shell = strdup(pw->pw_shell);
}

void person_prefer_home(struct person *p, const char *home)
{
	if (!home || home[0] != '/')
		return;
	free(p->home);
	p->home = strdup(home);
}

/* This asks the name service, so we do it only if a configuration depends on
 * groups. */
void person_find_groups(struct person *p, uid_t uid)
{
	const struct passwd *pw;
	gid_t gids[PERSON_GROUPS_MAX];
	int n = PERSON_GROUPS_MAX;

	if (access(CONFIG_SYSTEM_DIR "/groups", F_OK) < 0)
		return;
	pw = getpwuid(uid);
	if (!pw)
		return;
	if (getgrouplist(pw->pw_name, pw->pw_gid, gids, &n) < 0)
		n = PERSON_GROUPS_MAX;
	for (int i = 0; i < n; i++) {
		const struct group *g = getgrgid(gids[i]);

		if (g)
			p->groups[p->n_groups++] = strdup(g->gr_name);
	}
}

void person_free(struct person *p)
{
	free(p->name);
	free(p->account_home);
	free(p->home);
	free(p->shell);
	for (size_t i = 0; i < p->n_groups; i++)
		free(p->groups[i]);
}
