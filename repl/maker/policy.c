/* SPDX-License-Identifier: MIT */
/*
 * policy.c - the system's configuration for a person
 *
 * Runs in:   root: the children of the service
 * Trusts:    the system's files, and the clock of the host
 * Leaves:    a note in SERVICE_DIR, until the host starts again, of each exam
 *            whose end was seen
 */
#include "repl/maker/maker.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"
#include "repl/config/person.h"
#include "repl/lab/lab.h"
#include "repl/text/text.h"

#include <fcntl.h>

int policy_load(const struct person *person, struct config *cfg, struct err *e)
{
	struct config_errors errors = {0};
	struct config_where where = {.system_dir = CONFIG_SYSTEM_DIR,
		.home = person->account_home,
		.user = person->name,
		.groups = (const char *const *)person->groups,
		.ngroups = person->n_groups,
		.login = true};
	int r = config_load(cfg, &where, &errors);

	if (r < 0) {
		err_set(e, "the system's configuration is not in order: %.300s",
			errors.list.n ? errors.list.items[0] : "");
		err_kind_set(e, ERR_CONFIG);
	}
	config_errors_fini(&errors);
	return r;
}

bool policy_exam_ended(const struct config *cfg)
{
	auto_close int dir =
		open(SERVICE_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return past_look(dir, cfg->exam_end_s, "exam.end") == PAST_BEFORE;
}

int policy_keep_exam(const struct config *cfg, struct err *e)
{
	char end[TEXT_HUMAN];

	if (!exam_is_set(cfg) || !policy_exam_ended(cfg))
		return exam_check(cfg, e);
	err_set(e,
		"the exam ended at %s: it has passed, though this host's clock "
		"was set back since",
		text_minute(end, cfg->exam_end_s));
	return err_kind_set(e, ERR_CONFIG);
}
