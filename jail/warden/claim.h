/* SPDX-License-Identifier: MIT */
/*
 * claim.h - a jail that was made ahead waits until it is somebody's
 */
#ifndef JAIL_WARDEN_CLAIM_H
#define JAIL_WARDEN_CLAIM_H

#include "link.h"
#include "site.h"

struct warden;

/* What the warden says first over the socket of a claim, when all that can be
 * ready without a person is. Descriptors come with it: the claim of the host
 * id, and the directories that `cgroup` holds. */
struct claim_offer {
	uid_t id;
	struct limits limits; /* as it was made */
	struct cgroup cgroup;
};

/* And then: struct spec_claim comes, and this goes back. */
struct claim_answer {
	int ok;
	struct err err;
};

/* Wait until the jail is claimed, where it was made ahead, and make it what the
 * claim says. 0; -1 with e; SESSION_OVER. Where any of it fails the session is
 * over. */
LINK_CHECKED int claim_await(struct warden *w, struct err *e);

#endif
