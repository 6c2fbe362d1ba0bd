/* SPDX-License-Identifier: MIT */
/*
 * deadlines.h - how long the warden waits for what, in milliseconds
 *
 * One value, so that a test can make every wait short.
 */
#ifndef JAIL_WARDEN_DEADLINES_H
#define JAIL_WARDEN_DEADLINES_H

struct deadlines {
	/* a jail and its Python */
	int build_ms; /* init builds the jail */
	int boot_ms;  /* Python starts and says READY */

	/* stopping */
	int stop_ms;   /* init answers STOP */
	int verify_ms; /* without a /proc in the jail: all is seen stopped */
	int freeze_ms; /* the freezer has frozen all that can be frozen: a
			* process that has used up its CPU share freezes when
			* it gets more */
	int kill_ms;   /* init answers KILL: longer than it takes to kill what
			* can be killed at all */
	int quiet_ms;  /* between two looks at a jail that is stopped */

	/* checkpoints */
	int park_ms;	   /* the guest makes a copy, and the copy sleeps */
	int park_again_ms; /* the same, for the guest that replaced one that
			    * did not answer */
	int unhang_ms;	   /* the guest sees that its hanging copy was killed */
	int end_ms;	   /* a checkpoint that was given up is gone */
	int wake_ms;	   /* a checkpoint wakes up */

	/* a wait that is fair: longer while the jail is kept from running */
	int fair_look_ms; /* between two looks at that */
	int fair_ms;	  /* at most this much longer */

	/* a question to Python, and what follows its interrupt */
	int ask_ms;
	int ask_grace_ms;

	/* the end of a cell */
	int dying_ms;	     /* a death that has begun */
	int leave_ms;	     /* processes that are on their way out */
	int stack_ms;	     /* a stuck cell writes down its stacks */
	int stack_silent_ms; /* the same, from one line to the next */
};

/* Those of every session. */
extern const struct deadlines deadlines_default;

#endif
