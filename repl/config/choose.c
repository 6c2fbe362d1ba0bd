/* SPDX-License-Identifier: MIT */
/*
 * choose.c - the interpreter, and the person's own file
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    the configuration; what the person names, only when not locked
 */
#include "value.h"

#include "jail/base/err.h"

#include <string.h>
#include <unistd.h>

static int too_long(struct err *e)
{
	err_set(e, "the path of the interpreter is too long");
	return err_kind_set(e, ERR_USAGE);
}

static int write_path(const char *from, char *path, size_t size, struct err *e)
{
	if (strlen(from) >= size)
		return too_long(e);
	strcpy(path, from);
	return 0;
}

/* The configured path that is `wanted`, or ends in it. */
static const char *configured(const struct config *cfg, const char *wanted)
{
	for (size_t i = 0; i < cfg->executable.n; i++) {
		const char *item = cfg->executable.items[i];
		const char *base = strrchr(item, '/');

		if (!strcmp(item, wanted) ||
			(base && !strcmp(base + 1, wanted)))
			return item;
	}
	return NULL;
}

static int refuse(const struct config *cfg, const char *wanted, struct err *e)
{
	const struct config_key *key = config_key_find("python", "executable");
	char list[400];

	config_value_format(cfg, key, list, sizeof(list));
	err_set(e, "%s is not one of python.executable", wanted);
	err_hint(e, "configured are: %s", list);
	return err_kind_set(e, cfg->locked ? ERR_CONFIG : ERR_USAGE);
}

int config_choose_python(const struct config *cfg, const char *wanted,
	char *path, size_t size, struct err *e)
{
	const char *known =
		wanted ? configured(cfg, wanted) : cfg->executable.items[0];
	size_t n;

	if (known)
		return write_path(known, path, size, e);
	if (cfg->locked || !strchr(wanted, '/'))
		return refuse(cfg, wanted, e);
	if (wanted[0] == '/')
		return write_path(wanted, path, size, e);
	if (!getcwd(path, size))
		return err_errno(e, "find the current directory");
	n = strlen(path);
	if (n + 1 + strlen(wanted) >= size)
		return too_long(e);
	path[n] = '/';
	strcpy(path + n + 1, wanted);
	return 0;
}

/* What XDG's variable says, or `sub` of the home; then `name`. */
static int own_path(const char *xdg, const char *home, const char *sub,
	const char *name, char *path, size_t size)
{
	bool own = xdg && xdg[0] == '/';
	const char *top = own ? xdg : home;
	int n;

	if (!top || top[0] != '/')
		return -1;
	n = snprintf(path, size, "%s%s/%s", top, own ? "" : sub, name);
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

int config_user_file(const char *xdg, const char *home, char *path, size_t size)
{
	return own_path(
		xdg, home, "/.config", "cellblock/cellblock.conf", path, size);
}

int config_state_dir(const char *xdg, const char *home, char *path, size_t size)
{
	return own_path(xdg, home, "/.local/state", "cellblock", path, size);
}
