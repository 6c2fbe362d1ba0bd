/* SPDX-License-Identifier: MIT */
/*
 * service.h - what the maker's service and its children share (service.c,
 * client.c)
 */
#ifndef REPL_MAKER_SERVICE_H
#define REPL_MAKER_SERVICE_H

#include "repl/maker/maker.h"
#include "repl/serve/serve.h"

#include <limits.h>
#include <stdatomic.h>

#define LOG_NAME "cellblock-maker"
/* Most requests at a time. */
#define PLACES 64

enum service_state {
	PLACE_FREE,
	PLACE_WAITS, /* for a request */
	PLACE_ASKS,  /* the name service, who `uid` is */
	PLACE_WORKS, /* for `uid` */
	PLACE_TAKES, /* what `uid` hands in */
	PLACE_MADE,  /* a session that has host id `id` */
	PLACE_LEFT,  /* by a child that has refused, and ends */
};

/* While the child lives and is neither PLACE_MADE nor PLACE_LEFT, only the
 * child writes here. */
struct service_place {
	_Atomic int state;
	uid_t uid, id;
	bool logged, ahead, session;
	char name[NAME_MAX + 1];
	pid_t child; /* only the parent writes it */
};

struct service {
	struct listener listen;
	struct service_place *places; /* shared with the children */
	int signals;		      /* a signalfd */
	struct spares spares;
	int64_t next_ms;  /* when to fork the next child that waits; 0: one
			   * waits, or no place is free */
	bool failed;	  /* the last fork failed */
	int unclosed;	  /* connections (refuse()) */
	int64_t exams_ms; /* when to look at exams again */
	pid_t proctor;	  /* the child that looks at exams; or 0 */
	pid_t pid;
	const char *below;
	const char *path; /* of a socket that we made; NULL: there is none */
	bool tell;
	int told; /* the spares that we said are there */
};

/* In a child: serve the one client of this connection, in this place. */
_Noreturn void client_serve(
	struct service *s, struct service_place *mine, int conn);

/* In a child: make a jail ahead (spares_make). Returns if it cannot. */
void client_make_ahead(void *service, enum spec_mode mode,
	enum spec_prewarm prewarm, const struct spare *its,
	struct spare_key *key);

/* A child closes the connection to syslog while its number is that. */
void client_leave_log(void);

#endif
