/* SPDX-License-Identifier: MIT */
/*
 * tenants.c - the clients that a server tells apart by their tokens
 *
 * Runs in:   front end, confined
 * Trusts:    the tokens. No address says who a tenant is
 * Leaves:    for each name a key that no other name ever has, and figures
 *
 * A name that goes and comes again has a new key: files that were kept for the
 * old one belong to no tenant.
 */
#include "repl/serve/parts.h"

#include "jail/base/array.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The name whose token is for GET /metrics, and for nothing else. */
#define READER "metrics"

struct tenant {
	char name[TOKENS_NAME_MAX + 1];
	uint64_t key;
	struct metrics metrics;
};

struct tenants {
	struct metrics all;
	struct tokens tokens;
	struct tenant **v; /* none, if the token has no name */
	size_t n;
	uint64_t last_key;
};

struct tenants *tenants_open(void)
{
	return calloc(1, sizeof(struct tenants));
}

static bool is_among(
	struct tenant *const *v, size_t n, const struct tenant *one)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == one)
			return true;
	return false;
}

/* Free the list, and those of it that are not in the other. */
static void free_others(
	struct tenant **v, size_t n, struct tenant *const *kept, size_t nkept)
{
	for (size_t i = 0; i < n; i++)
		if (!is_among(kept, nkept, v[i]))
			free(v[i]);
	free(v);
}

void tenants_close(struct tenants *t)
{
	if (!t)
		return;
	free_others(t->v, t->n, NULL, 0);
	tokens_free(&t->tokens);
	free(t);
}

/* ---- who there is ---- */

static struct tenant *find_name(
	struct tenant *const *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i]->name, name))
			return v[i];
	return NULL;
}

static struct tenant *find_key(
	const struct tenants *t, struct connections_peer who)
{
	for (size_t i = 0; i < t->n; i++)
		if (who.family == CONNECTIONS_TENANT && t->v[i]->key == who.key)
			return t->v[i];
	return NULL;
}

static struct tenant *make_tenant(struct tenants *t, const char *name)
{
	struct tenant *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	snprintf(one->name, sizeof(one->name), "%s", name);
	one->key = ++t->last_key;
	one->metrics.all = &t->all;
	return one;
}

/* List a tenant for each name: the one that has it already, or a new one. */
static int list_names(struct tenants *t, const struct tokens *tokens,
	struct tenant **v, size_t *n)
{
	for (size_t i = 0; i < tokens->n; i++) {
		const char *name = tokens->v[i].name;

		if (!name || find_name(v, *n, name))
			continue;
		v[*n] = find_name(t->v, t->n, name);
		if (!v[*n])
			v[*n] = make_tenant(t, name);
		if (!v[*n])
			return -1;
		++*n;
	}
	return 0;
}

int tenants_set(struct tenants *t, struct tokens *tokens)
{
	struct tenant **v = calloc(tokens->n + 1, sizeof(struct tenant *));
	size_t n = 0;

	if (!v || list_names(t, tokens, v, &n) < 0) {
		free_others(v, n, t->v, t->n);
		return -1;
	}
	free_others(t->v, t->n, v, n);
	tokens_free(&t->tokens);
	t->tokens = *tokens;
	*tokens = (struct tokens){0};
	t->v = v;
	t->n = n;
	return 0;
}

bool tenants_ask(const struct tenants *t)
{
	return t->tokens.n > 0;
}

bool tenants_admit(const struct tenants *t, const char *authorization,
	struct connections_peer *who)
{
	static const char scheme[] = "Bearer ";
	const struct token *found;

	if (!tenants_ask(t))
		return true;
	if (!authorization ||
		strncasecmp(authorization, scheme, strlen(scheme)) != 0)
		return false;
	found = tokens_find(&t->tokens, authorization + strlen(scheme));
	if (found && found->name)
		*who = (struct connections_peer){.family = CONNECTIONS_TENANT,
			.key = find_name(t->v, t->n, found->name)->key};
	return found;
}

bool tenants_is_reader(const struct tenants *t, struct connections_peer who)
{
	const struct tenant *one = find_key(t, who);

	return one && !strcmp(one->name, READER);
}

bool tenants_is_gone(const struct tenants *t, struct connections_peer who)
{
	return t->n > 0 ? !find_key(t, who) : who.family == CONNECTIONS_TENANT;
}

const char *tenants_name(const struct tenants *t, struct connections_peer who)
{
	const struct tenant *one = find_key(t, who);

	return one ? one->name : NULL;
}

/* ---- figures ---- */

struct metrics *tenants_metrics(struct tenants *t, struct connections_peer who)
{
	struct tenant *one = find_key(t, who);

	return one ? &one->metrics : &t->all;
}

const struct metrics *tenants_all(const struct tenants *t)
{
	return &t->all;
}

const struct metrics *tenants_each(
	const struct tenants *t, size_t i, const char **name)
{
	if (i >= t->n)
		return NULL;
	*name = t->v[i]->name;
	return &t->v[i]->metrics;
}
