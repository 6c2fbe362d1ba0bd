/* SPDX-License-Identifier: MIT */
/*
 * service.h - cellblock --maker: sessions for whoever may have them
 */
#ifndef REPL_MAKER_SERVICE_H
#define REPL_MAKER_SERVICE_H

#include <stdbool.h>

struct err;

/* Where it listens, unless it is told otherwise, and where people ask. */
#define SERVICE_DIR "/run/cellblock"
#define SERVICE_PATH SERVICE_DIR "/maker"

/* Listen at a path (NULL: at the socket that a service manager passed, or else
 * at SERVICE_PATH) and make sessions until a signal says that it is enough.
 * Says with `tell` on stderr for whom. Root only. 0, or -1 with e. */
int service_run(const char *path, bool quiet, bool tell, struct err *e);

#endif
