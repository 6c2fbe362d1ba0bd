/* SPDX-License-Identifier: MIT */
/*
 * exam.c - the times of an exam, and of a day, by the clock of the host
 *
 * Runs in:   front end, and root's maker, which decides
 * Trusts:    the configuration, and the clock and time zone of the host
 */
#include "config.h"

#include "jail/base/err.h"
#include "repl/text/text.h"

#include <time.h>

bool exam_is_set(const struct config *cfg)
{
	return cfg->limits.until_s != 0;
}

bool exam_hands_in(const struct config *cfg)
{
	return exam_is_set(cfg) && cfg->lab.submit && cfg->exam_hand_in;
}

bool exam_is_late(const struct config *cfg, int64_t when_s)
{
	return exam_hands_in(cfg) && cfg->lab.due_s && cfg->lab.due_s < when_s;
}

void exam_end_day(const struct config *cfg, struct limits *limits)
{
	time_t now = time(NULL), end;
	struct tm today, tm;

	if (!cfg->until_min || limits->until_s || !localtime_r(&now, &today))
		return;
	tm = today;
	tm.tm_hour = cfg->until_min / 60;
	tm.tm_min = cfg->until_min % 60;
	tm.tm_sec = 0;
	tm.tm_isdst = -1;
	end = mktime(&tm);
	if (end <= now) {
		tm.tm_mday++;
		tm.tm_hour = cfg->until_min / 60;
		tm.tm_min = cfg->until_min % 60;
		tm.tm_isdst = -1;
		end = mktime(&tm);
	}
	limits->until_s = (int64_t)end;
	limits->until_daily = 1;
}

int exam_check(const struct config *cfg, struct err *e)
{
	int64_t now = time(NULL), begin = cfg->exam_begin_s;
	char shown[TEXT_HUMAN], clock[TEXT_HUMAN];

	if (!exam_is_set(cfg) || (now >= begin && now < cfg->exam_end_s))
		return 0;
	err_set(e, "the exam %s at %s: this host's clock says %s",
		now < begin ? "begins" : "ended",
		text_minute(shown, now < begin ? begin : cfg->exam_end_s),
		text_minute(clock, now));
	return err_kind_set(e, ERR_CONFIG);
}
