/* SPDX-License-Identifier: MIT */
/*
 * event.h - what the warden says
 */
#ifndef REPL_SESSION_EVENT_H
#define REPL_SESSION_EVENT_H

struct session;

/* Take every event there is. A warden that is gone ends the session. */
void event_take_all(struct session *s);

#endif
