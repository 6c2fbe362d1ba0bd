/* SPDX-License-Identifier: MIT */
/*
 * test_subids.c - which ids belong to one user together
 */
#include "repl/serve/edge/edge.h"

#include "forked.h"

#include <stdio.h>

static void load(struct subids *s, const char *text)
{
	char path[] = "/tmp/cellblock-subids-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	subids_load(s, path);
	unlink(path);
}

static void ids_of_a_range_are_one_user(void **state)
{
	struct subids s;

	(void)state;
	load(&s, "ann:100000:65536\n# none\n\nbob:165536:10\n"
		 "1007:4294967290:6\nx:y:z\n:7:7\ncut:300000");
	assert_int_equal(s.n, 3);
	assert_int_equal(subids_key(&s, 0), 0);
	assert_int_equal(subids_key(&s, 99999), 99999);
	assert_int_equal(subids_key(&s, 100000), subids_key(&s, 165535));
	assert_int_not_equal(subids_key(&s, 165535), subids_key(&s, 165536));
	assert_int_equal(subids_key(&s, 165536), subids_key(&s, 165545));
	assert_int_equal(subids_key(&s, 165546), 165546);
	assert_int_equal(subids_key(&s, 300000), 300000);
	assert_int_equal(
		subids_key(&s, 4294967290u), subids_key(&s, 4294967295u));
	assert_true(subids_key(&s, 100000) > UINT32_MAX);
	subids_free(&s);
}

static void without_a_file_each_id_is_a_user(void **state)
{
	struct subids s;

	(void)state;
	subids_load(&s, "/nonexistent/subuid");
	assert_int_equal(subids_key(&s, 100001), 100001);
	subids_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_a_range_are_one_user),
		cmocka_unit_test(without_a_file_each_id_is_a_user),
	};

	return cmocka_run_group_tests_name("subids", tests, NULL, NULL);
}
