/* SPDX-License-Identifier: MIT */
/*
 * test_spawn.c - the environment of every Python process
 */
#include "jail/init/init.h"

#include "jail/apply/apply.h"
#include "jail/base/err.h"
#include "jail/spec.h"

#include "forked.h"

#define MANY 200

static const char *env[MANY + 1];

/* With `n` variables A0, A1 and so on. */
static int prepare(struct spawn *s, int n, struct err *e)
{
	static char text[MANY][32];
	const struct jail_spec spec = {.env = env};
	const struct apply_ctx built = {.oom_fd = -1};

	memset(env, 0, sizeof(env));
	for (int i = 0; i < n; i++) {
		snprintf(text[i], sizeof(text[i]), "A%d=%d", i, i);
		env[i] = text[i];
	}
	return spawn_prepare(s, &spec, NULL, &built, NULL, e);
}

static const char *value(const struct spawn *s, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; s->env[i]; i++)
		if (!strncmp(s->env[i], name, len) && s->env[i][len] == '=')
			return s->env[i] + len + 1;
	return NULL;
}

static void spawn_fini(struct spawn *s)
{
	close(s->null);
}

static void every_variable_is_passed_or_nothing_starts(void **state)
{
	struct spawn s;
	struct err e = {0};

	(void)state;
	assert_int_equal(prepare(&s, 64, &e), 0);
	assert_string_equal(value(&s, "A63"), "63");
	assert_string_equal(value(&s, "HOME"), "/home");
	spawn_fini(&s);
	assert_int_equal(prepare(&s, MANY, &e), -1);
	assert_string_equal(e.msg, "python.env: too many variables");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_variable_is_passed_or_nothing_starts),
	};

	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
