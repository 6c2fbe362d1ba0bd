/* SPDX-License-Identifier: MIT */
/*
 * mhd.c - libmicrohttpd, loaded when it is needed
 *
 * Runs in:   front end, before its cage closes
 * Trusts:    the libraries of the host
 * Leaves:    the library loaded
 *
 * It brings a TLS library along, which sets itself up when it is loaded: a
 * prompt would come later for it, although no prompt serves anybody.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"

#include <dlfcn.h>
#include <string.h>

static const char library[] = "libmicrohttpd.so.12";

/* A pointer to a function, from one to data (POSIX says how). */
static int find(void *lib, const char *name, void *call, struct err *e)
{
	void *p = dlsym(lib, name);

	if (!p)
		return err_set(e, "%s has no %s", library, name);
	memcpy(call, &p, sizeof(p));
	return 0;
}

int mhd_load(struct mhd *m, struct err *e)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		err_set(e, "serve: %.200s", dlerror());
		return err_hint(e, "install libmicrohttpd");
	}
#define MHD_FIND(name)                                                         \
	if (find(lib, "MHD_" #name, &m->name, e) < 0)                          \
		return -1;
	MHD_CALLS(MHD_FIND)
#undef MHD_FIND
	return 0;
}
