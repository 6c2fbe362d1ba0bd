/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/config/config.c repl/config/errors.c repl/config/exam.c
 * repl/config/file.c repl/config/keys.c repl/config/value.c jail/enforce.c */
/* fuzz-libs: -linih */
/*
 * fuzz_config.c - any bytes as a configuration file
 *
 * Every error is safe to show. An accepted configuration prints as a file that
 * is accepted and prints the same.
 */
#include "must.h"

#include "repl/config/config.h"
#include "repl/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jail/host/host.h"
#include "jail/walls/cgroup/cgroup.h"
#include "jail/walls/walls.h"

/* enforce.c is linked for its words; this probe of the host is never called. */
int cgroup_can_freeze(const struct cgroup *cg)
{
	(void)cg;
	abort();
}

int seccomp_size(enum seccomp_profile profile)
{
	(void)profile;
	abort();
}

int host_has_swap(void)
{
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Read `text` as a named file over the built-in values. Returns the count of
 * errors. */
static size_t read_text(struct config *cfg, const char *text, size_t n)
{
	char path[64];
	struct config_where where = {.own_home = "/home/kim",
		.explicit_file = path,
		.checking = true};
	struct config_errors errors = {0};
	int fd = memfd_create("f", MFD_CLOEXEC);
	size_t count;

	must(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	config_load(cfg, &where, &errors);
	close(fd);
	for (size_t i = 0; i < errors.list.n; i++)
		must(utf8_is_text(errors.list.items[i],
			strlen(errors.list.items[i]), "\t"));
	count = errors.list.n + errors.dropped;
	config_errors_fini(&errors);
	return count;
}

/* Print without the sources, because they differ; caller frees. */
static char *print(struct config *cfg, size_t *n)
{
	char *text;
	FILE *f = open_memstream(&text, n);

	must(!!f);
	/* Read back, the built-in undo would be one that the file sets. */
	if (cfg->limits.checkpoint == CHECKPOINT_NEVER)
		cfg->limits.undo = 0;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		free(cfg->sources[i]);
		cfg->sources[i] = NULL;
	}
	for (size_t i = 0; i < cfg->env_sources.n; i++)
		strcpy(cfg->env_sources.items[i], "f");
	config_print_merged(f, cfg);
	fclose(f);
	return text;
}

/* Quotes and sources can make a printed line longer than a file's line. */
static int fits(const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len > CONFIG_LINE_MAX)
			return 0;
	}
	return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct config cfg, again;
	char *bytes = malloc(n + 1), *first, *second;
	size_t n1, n2;

	memcpy(bytes, data, n);
	bytes[n] = '\0';
	read_text(&cfg, bytes, n);
	first = print(&cfg, &n1);
	if (fits(first)) {
		must(read_text(&again, first, n1) == 0);
		second = print(&again, &n2);
		must(n1 == n2 && !memcmp(first, second, n1));
		free(second);
		config_fini(&again);
	}
	free(first);
	config_fini(&cfg);
	free(bytes);
	return 0;
}
