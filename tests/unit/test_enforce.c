/* SPDX-License-Identifier: MIT */
/*
 * test_enforce.c - what enforces each limit, and what jail.require refuses
 */
#include "jail/enforce.h"

#include "jail/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A host with every mechanism. */
static const struct enforce_facts everything = {
	.jail = 1,
	.cgroup = 2,
	.memory = 1,
	.swap = 1,
	.pids = 1,
	.cpus = 2,
	.cpu = 1,
	.freezer = 1,
	.nproc_own = 1,
	.landlock_abi = 6,
	.mount_setattr = 1,
	.proc = 1,
	.own_inodes = 1,
	.asks = 1,
	.seccomp = 500,
	.root = 1,
};

static const char *const all_words[] = {"cgroup", "memory", "noswap",
	"processes", "cpus", "cpu", "landlock", "proc", "freezer", "inodes",
	"counts"};
#define WORDS (sizeof(all_words) / sizeof(all_words[0]))

static int required(
	const char *word, const struct enforce_facts *f, struct err *e)
{
	const char *const words[] = {word, NULL};

	*e = (struct err){0};
	return enforce_require(words, f, -1, e);
}

static void every_limit_is_strong_on_a_full_host(void **state)
{
	char said[256];

	(void)state;
	for (int i = 0; i < ENFORCE_LIMITS; i++) {
		struct enforce row =
			enforce_look((enum enforce_limit)i, &everything, NULL);

		assert_non_null(row.what);
		assert_int_equal(row.strength, ENFORCE_STRONG);
		assert_null(row.remedy);
	}
	enforce_say(&everything, said, sizeof(said));
	assert_string_equal(said, "");
}

static void a_limit_that_is_not_strong_has_a_remedy(void **state)
{
	struct enforce_facts nothing = {0};

	(void)state;
	for (int root = 0; root < 2; root++) {
		nothing.root = root;
		for (int i = 0; i < ENFORCE_LIMITS; i++) {
			struct enforce row = enforce_look(
				(enum enforce_limit)i, &nothing, NULL);

			if (row.strength != ENFORCE_STRONG)
				assert_non_null(row.remedy);
		}
	}
}

static void the_best_enforcer_is_named(void **state)
{
	struct enforce_facts f = everything;
	int number;

	(void)state;
	assert_string_equal(
		enforce_look(ENFORCE_MEMORY, &f, NULL).by, "cgroup v2");
	f.cgroup = 1;
	assert_string_equal(
		enforce_look(ENFORCE_MEMORY, &f, NULL).by, "cgroup v1");
	f.memory = 0; /* the limit is set, and not enforced */
	assert_int_equal(
		enforce_look(ENFORCE_MEMORY, &f, NULL).strength, ENFORCE_WEAK);
	f.pids = 0;
	assert_string_equal(enforce_look(ENFORCE_PROCESSES, &f, &number).by,
		"user namespace");
	assert_string_equal(
		enforce_by(ENFORCE_PROCESSES, number), "user namespace");
	f.nproc_own = 0;
	assert_int_equal(enforce_look(ENFORCE_PROCESSES, &f, NULL).strength,
		ENFORCE_WEAK);
	assert_string_equal(enforce_by(ENFORCE_PROCESSES, -1), "?");
	assert_string_equal(enforce_by(ENFORCE_TIME, 3), "?");
}

static void a_host_without_swap_needs_no_swap_limit(void **state)
{
	struct enforce_facts f = everything;
	struct err e;

	(void)state;
	f.swap = 0;
	assert_int_equal(required("noswap", &f, &e), -1);
	f.no_host_swap = 1;
	assert_int_equal(required("noswap", &f, &e), 0);
}

static void each_word_of_require_refuses_a_missing_limit(void **state)
{
	struct enforce_facts nothing = {0};
	struct err e;

	(void)state;
	for (size_t i = 0; i < WORDS; i++) {
		assert_int_equal(required(all_words[i], &everything, &e), 0);
		assert_int_equal(required(all_words[i], &nothing, &e), -1);
		assert_int_equal(e.kind, ERR_JAIL);
		assert_non_null(strstr(e.msg, all_words[i]));
		assert_true(e.hint[0]);
	}
}

static void a_limit_that_is_not_known_yet_is_skipped(void **state)
{
	const char *const words[] = {"proc", NULL};
	struct enforce_facts f = everything;
	struct err e = {0};

	(void)state;
	f.proc = 0;
	assert_int_equal(enforce_require(words, &f, ENFORCE_PROC, &e), 0);
	assert_int_equal(enforce_require(words, &f, -1, &e), -1);
}

static void a_container_is_told_what_helps_there(void **state)
{
	struct enforce_facts f = everything;

	(void)state;
	f.root = f.cgroup = f.memory = 0;
	assert_non_null(
		strstr(enforce_look(ENFORCE_MEMORY, &f, NULL).remedy, "sudo"));
	f.contained = 1;
	assert_non_null(strstr(enforce_look(ENFORCE_MEMORY, &f, NULL).remedy,
		"docs/CONTAINER.md"));
	assert_null(
		strstr(enforce_look(ENFORCE_MEMORY, &f, NULL).remedy, "sudo"));
}

static void unknown_words_of_require_are_refused(void **state)
{
	static const char *const others[] = {
		"", "Memory", "memory=kernel", "swap", "cgroup v1"};
	char words[256];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(enforce_word_find(others[i]), -1);
		assert_int_equal(required(others[i], &everything, &e), -1);
		assert_int_equal(e.kind, ERR_CONFIG);
	}
	enforce_words(words, sizeof(words));
	for (size_t i = 0; i < WORDS; i++) {
		assert_true(enforce_word_find(all_words[i]) >= 0);
		assert_non_null(strstr(words, all_words[i]));
	}
}

static void long_texts_are_cut(void **state)
{
	struct enforce_facts nothing = {0};
	char small[8] = "xxxxxxx";

	(void)state;
	enforce_words(small, sizeof(small));
	assert_int_equal(strlen(small), 7);
	enforce_say(&nothing, small, sizeof(small));
	assert_int_equal(strlen(small), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_limit_is_strong_on_a_full_host),
		cmocka_unit_test(a_limit_that_is_not_strong_has_a_remedy),
		cmocka_unit_test(the_best_enforcer_is_named),
		cmocka_unit_test(a_host_without_swap_needs_no_swap_limit),
		cmocka_unit_test(each_word_of_require_refuses_a_missing_limit),
		cmocka_unit_test(a_limit_that_is_not_known_yet_is_skipped),
		cmocka_unit_test(a_container_is_told_what_helps_there),
		cmocka_unit_test(unknown_words_of_require_are_refused),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
