/* SPDX-License-Identifier: MIT */
/*
 * mhd.h - libmicrohttpd, loaded when it is needed
 */
#ifndef REPL_SERVE_MHD_H
#define REPL_SERVE_MHD_H

#include <microhttpd.h>

struct err;

/* The functions that are used, without MHD_. */
#define MHD_CALLS(X)                                                           \
	X(start_daemon)                                                        \
	X(stop_daemon)                                                         \
	X(get_daemon_info)                                                     \
	X(get_timeout)                                                         \
	X(run)                                                                 \
	X(get_connection_info)                                                 \
	X(lookup_connection_value)                                             \
	X(suspend_connection)                                                  \
	X(resume_connection)                                                   \
	X(queue_response)                                                      \
	X(create_response_from_buffer)                                         \
	X(create_response_from_callback)                                       \
	X(add_response_header)                                                 \
	X(destroy_response)                                                    \
	X(get_reason_phrase_for)                                               \
	X(create_post_processor)                                               \
	X(post_process)                                                        \
	X(destroy_post_processor)                                              \
	X(add_connection)

struct mhd {
#define MHD_MEMBER(name) __typeof__(MHD_##name) *name;
	MHD_CALLS(MHD_MEMBER)
#undef MHD_MEMBER
};

/* Load it. 0, or -1 with e. */
int mhd_load(struct mhd *m, struct err *e);

#endif
