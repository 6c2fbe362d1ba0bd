/* SPDX-License-Identifier: MIT */
/*
 * test_cgroup_person.c - one share of the cores for each person
 */
#include "cgroup_world.h"

#define ANN 70001
#define BOB 70002
#define SESSIONS 4

struct persons {
	struct world *w;
	struct cgroup cg[SESSIONS];
};

/* Sessions of a parent directory that no real session has. */
static int persons_make(void **state)
{
	struct persons *p = calloc(1, sizeof(*p));

	world_make((void **)&p->w);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		if (p->w->caps.usable & 1u << i && !p->w->caps.shared)
			sprintf(strrchr(p->w->caps.dir[i], '/'),
				"/cellblock-%s", p->w->name);
	*state = p;
	return 0;
}

static void end_one(struct cgroup *cg)
{
	if (cg->kind == CGROUP_NONE)
		return;
	cgroup_close(cg);
	cgroup_remove(cg, SOON_MS, NULL);
	cg->kind = CGROUP_NONE;
}

static int persons_end(void **state)
{
	struct persons *p = *state;

	for (int i = 0; i < SESSIONS; i++)
		end_one(&p->cg[i]);
	free(p->w);
	free(p);
	return 0;
}

/* -1: a session made ahead. */
static void open_for(struct persons *p, int i, int person, const char *name)
{
	struct cgroup_caps *caps = &p->w->caps;
	struct err e;

	caps->person = -1;
	caps->in[0] = '\0';
	if (person < 0)
		cgroup_person_choose_new(caps);
	else
		cgroup_person_choose(caps, (uid_t)person);
	if (open_named(p->w, &p->cg[i], name, &e) < 0)
		fail_msg("%s", e.msg);
}

static const char *cpu_dir(const struct cgroup *cg)
{
	return cg->dirs[cg->at[CGROUP_CPU]];
}

static void above(char *path, const struct cgroup *cg)
{
	cgroup_dir_parent(path, cpu_dir(cg));
}

static int are_together(const struct cgroup *a, const struct cgroup *b)
{
	char of_a[CGROUP_PATH_MAX], of_b[CGROUP_PATH_MAX];

	above(of_a, a);
	above(of_b, b);
	return !strcmp(of_a, of_b);
}

static void read_weight(const struct persons *p, const struct cgroup *cg,
	char *text, size_t size)
{
	char path[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 16];

	above(path, cg);
	snprintf(file, sizeof(file), "%s/%s", path,
		p->w->caps.kind == CGROUP_V2 ? "cpu.weight" : "cpu.shares");
	assert_true(io_read_small(AT_FDCWD, file, text, size) > 0);
}

#define NEED_SHARES(p)                                                         \
	do {                                                                   \
		NEED((p)->w, CGROUP_CPU, CGROUP_FREEZER);                      \
		if ((p)->w->caps.shared)                                       \
			SKIP("a delegated cgroup is one person's");            \
	} while (0)

static void each_person_has_one_directory_and_they_weigh_the_same(void **state)
{
	struct persons *p = *state;
	char ann[CGROUP_PATH_MAX], of_ann[32], of_bob[32];

	NEED_SHARES(p);
	open_for(p, 0, ANN, "one");
	open_for(p, 1, ANN, "two");
	open_for(p, 2, BOB, "three");
	assert_true(are_together(&p->cg[0], &p->cg[1]));
	assert_false(are_together(&p->cg[0], &p->cg[2]));
	assert_true(cgroup_person_has_shares(&p->cg[0]));
	read_weight(p, &p->cg[0], of_ann, sizeof(of_ann));
	read_weight(p, &p->cg[2], of_bob, sizeof(of_bob));
	assert_string_equal(of_ann, of_bob);

	/* The directory goes with its last session. */
	above(ann, &p->cg[0]);
	end_one(&p->cg[0]);
	assert_int_equal(access(ann, F_OK), 0);
	end_one(&p->cg[1]);
	assert_int_equal(access(ann, F_OK), -1);
	end_one(&p->cg[2]);
	assert_int_equal(access(p->w->caps.dir[CGROUP_CPU], F_OK), -1);
}

static void the_directory_of_a_session_made_ahead_becomes_a_persons(
	void **state)
{
	struct persons *p = *state;
	struct err e;

	NEED_SHARES(p);
	open_for(p, 0, -1, "one");
	open_for(p, 1, -1, "two");
	assert_false(are_together(&p->cg[0], &p->cg[1]));
	/* control: without a mark the person's is another one */
	open_for(p, 2, ANN, "three");
	assert_false(are_together(&p->cg[0], &p->cg[2]));
	end_one(&p->cg[2]);
	if (cgroup_person_mark(&p->cg[0], ANN, &e) < 0)
		fail_msg("%s", e.msg);
	open_for(p, 2, ANN, "three");
	assert_true(are_together(&p->cg[0], &p->cg[2]));
	open_for(p, 3, BOB, "four");
	assert_false(are_together(&p->cg[3], &p->cg[0]));
	assert_false(are_together(&p->cg[3], &p->cg[1]));
	end_one(&p->cg[2]);

	/* A directory that the person has got later counts, as when what is in
	 * the first only dies. */
	assert_int_equal(usleep(2000), 0);
	assert_int_equal(cgroup_person_mark(&p->cg[1], ANN, &e), 0);
	open_for(p, 2, ANN, "three");
	assert_true(are_together(&p->cg[1], &p->cg[2]));
}

static int is_free(const char *name, void *arg)
{
	(void)arg;
	return !strcmp(name, "dead") || !strcmp(name, "flat");
}

static void dead_sessions_are_cleared_in_all_directories(void **state)
{
	struct persons *p = *state;
	char ann[CGROUP_PATH_MAX];

	NEED_SHARES(p);
	open_for(p, 0, ANN, "dead");
	open_for(p, 1, BOB, "living");
	open_for(p, 2, BOB, "ours");
	/* As builds before this one made them. */
	p->w->caps.person = -1;
	p->w->caps.in[0] = '\0';
	assert_int_equal(open_named(p->w, &p->cg[3], "flat", NULL), 0);
	assert_int_equal(cgroup_freeze(&p->cg[0], 1, SOON_MS, NULL), 0);
	above(ann, &p->cg[0]);

	/* control: a session that lives is left alone */
	cgroup_clear_dead(&p->cg[2], is_free, NULL);
	assert_int_equal(access(cpu_dir(&p->cg[0]), F_OK), 0);
	assert_int_equal(access(cpu_dir(&p->cg[3]), F_OK), 0);

	cgroup_close(&p->cg[0]);
	cgroup_close(&p->cg[3]);
	cgroup_clear_dead(&p->cg[2], is_free, NULL);
	assert_int_equal(access(ann, F_OK), -1);
	assert_int_equal(access(cpu_dir(&p->cg[3]), F_OK), -1);
	assert_int_equal(access(cpu_dir(&p->cg[1]), F_OK), 0);
}

/* The layout needs no controller, so this works beside version 1. */
static void version_2_has_the_same_directories(void **state)
{
	static const char mount[] = "/sys/fs/cgroup/unified";
	struct persons *p = *state;
	char path[CGROUP_PATH_MAX];

	if (geteuid() != 0 || access(mount, W_OK) < 0)
		SKIP("no version 2 is mounted beside version 1");
	p->w->caps = (struct cgroup_caps){
		.kind = CGROUP_V2, .usable = 1u << CGROUP_CPU};
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		snprintf(p->w->caps.dir[i], CGROUP_PATH_MAX, "%s/cellblock-%s",
			mount, p->w->name);
	open_for(p, 0, -1, "one");
	assert_int_equal(cgroup_person_mark(&p->cg[0], ANN, NULL), 0);
	open_for(p, 1, ANN, "two");
	open_for(p, 2, BOB, "three");
	assert_true(are_together(&p->cg[0], &p->cg[1]));
	assert_false(are_together(&p->cg[0], &p->cg[2]));
	assert_int_equal(cgroup_freeze(&p->cg[0], 1, SOON_MS, NULL), 0);
	for (int i = 0; i < 3; i++)
		end_one(&p->cg[i]);
	snprintf(path, sizeof(path), "%s/cellblock-%s", mount, p->w->name);
	assert_int_equal(access(path, F_OK), -1);
}

#define TEST_P(f) cmocka_unit_test_setup_teardown(f, persons_make, persons_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_P(each_person_has_one_directory_and_they_weigh_the_same),
		TEST_P(the_directory_of_a_session_made_ahead_becomes_a_persons),
		TEST_P(dead_sessions_are_cleared_in_all_directories),
		TEST_P(version_2_has_the_same_directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
