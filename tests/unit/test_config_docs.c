/* SPDX-License-Identifier: MIT */
/*
 * test_config_docs.c - manual, sample file and completions know every key
 *
 * Reads the source tree in the working directory or in CELLBLOCK_SRC.
 */
#include "config_world.h"

#include "repl/config/options.h"

/* The whole file, terminated; caller frees. */
static char *slurp(const char *name)
{
	const char *top = getenv("CELLBLOCK_SRC");
	char path[512];
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("cannot open %s", path);
	if (getdelim(&text, &size, '\0', f) < 0)
		fail_msg("cannot read %s", path);
	fclose(f);
	return text;
}

/* From the heading to the next, cut out of `text`; caller frees. */
static char *section_of(const char *text, const char *before,
	const char *section, const char *after, const char *next)
{
	char heading[64];
	const char *start, *end;

	snprintf(heading, sizeof(heading), "%s%s%s", before, section, after);
	start = strstr(text, heading);
	if (!start)
		fail_msg("no \"%s\"", heading);
	start += strlen(heading) - 1;
	end = strstr(start, next);
	return strndup(start, end ? (size_t)(end - start) : strlen(start));
}

static void assert_has(const char *where, const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("%s lacks:\n%s", where, what);
}

static void the_sample_has_every_key_with_its_default(void **state)
{
	char *text = slurp("etc/cellblock.conf");
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		char *part = section_of(text, "\n[", k->section, "]\n", "\n[");
		char line[128];

		snprintf(line, sizeof(line), "\n#%s =%s%s\n", k->name,
			k->def[0] ? " " : "", k->def);
		assert_has("etc/cellblock.conf", part, line);
		free(part);
	}
	for (char *p = text; (p = strchr(p, '\n')); p++)
		found += p[1] == '#' && p[2] != ' ' && p[2] != '\n' &&
			 p[2] != '\t';
	assert_int_equal(found, CONFIG_NKEYS);
	free(text);
}

static void the_sample_uncommented_changes_nothing(void **state)
{
	struct world *w = *state;
	char *text = slurp("etc/cellblock.conf");

	for (char *p = text; (p = strchr(p, '\n')); p++)
		if (p[1] == '#' && p[2] >= 'a' && p[2] <= 'z')
			p[1] = ' ';
	put(w, "cellblock.conf", text);
	free(text);
	load_ok(w);
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		struct config plain;
		char want[256];

		assert_int_equal(config_init(&plain), 0);
		config_value_format(&plain, k, want, sizeof(want));
		config_fini(&plain);
		assert_value(w, k->section, k->name,
			k->type == CONFIG_VARIABLE ? "NAME=" : want);
	}
}

static void the_manual_has_every_key_with_its_default(void **state)
{
	char *text = slurp("man/cellblock.conf.5");

	(void)state;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		char *part = section_of(
			text, "\n.Ss Section ", k->section, "\n", "\n.Ss ");
		char item[64], def[64];
		const char *at;
		char *line;

		snprintf(item, sizeof(item), "\n.It Cm %s No = ", k->name);
		assert_has("man/cellblock.conf.5", part, item);
		at = strstr(part, item) + 1;
		line = strndup(at, strcspn(at, "\n"));
		/* roff spells a double quote otherwise */
		snprintf(def, sizeof(def), " Pq Li %s", k->def);
		if (k->def[0] && k->def[0] != '"')
			assert_has("man/cellblock.conf.5", line, def);
		free(line);
		free(part);
	}
	free(text);
}

/* A whole word: no character of a key stands on either side. */
static int has_word(const char *text, const char *word)
{
	static const char more[] = "abcdefghijklmnopqrstuvwxyz_-.";
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if (!p[n] || !strchr(more, p[n]))
			return 1;
	return 0;
}

static void the_completions_have_every_key_and_option(void **state)
{
	static const char *const files[] = {"completions/cellblock.bash",
		"completions/cellblock.zsh", "completions/cellblock.fish"};

	(void)state;
	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		char *text = slurp(files[f]);
		const char *name;
		char letter, word[64];

		for (size_t i = 0; i < CONFIG_NKEYS; i++) {
			snprintf(word, sizeof(word), "%s.%s",
				config_keys[i].section, config_keys[i].name);
			if (!has_word(text, word))
				fail_msg("%s lacks %s", files[f], word);
		}
		for (size_t i = 0; (name = options_name(i, &letter)); i++) {
			if (!name[0] || !strcmp(name, "login"))
				continue;
			snprintf(word, sizeof(word), "%s%s",
				f == 2 ? "-l " : "--", name);
			if (!has_word(text, word))
				fail_msg("%s lacks %s", files[f], word);
		}
		free(text);
	}
}

/* Write `help` as a word of a shell in single quotes; zsh also needs each colon
 * marked. */
static void quote_help(char *out, const char *help, const char *quote, bool zsh)
{
	for (; *help; help++) {
		if (*help == '\'')
			out = stpcpy(out, quote);
		else if (*help == ':' && zsh)
			out = stpcpy(out, "\\:");
		else
			*out++ = *help;
	}
	strcpy(out, "'");
}

static void the_completions_describe_keys_as_the_table_does(void **state)
{
	char *zsh = slurp("completions/cellblock.zsh");
	char *fish = slurp("completions/cellblock.fish");

	(void)state;
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		char line[256];
		int n = snprintf(
			line, sizeof(line), "\t'%s.%s:", k->section, k->name);

		quote_help(line + n, k->help, "'\\''", true);
		assert_has("completions/cellblock.zsh", zsh, line);
		n = snprintf(
			line, sizeof(line), "\t%s.%s '", k->section, k->name);
		quote_help(line + n, k->help, "\\'", false);
		assert_has("completions/cellblock.fish", fish, line);
	}
	free(zsh);
	free(fish);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample_has_every_key_with_its_default),
		cmocka_unit_test_setup_teardown(
			the_sample_uncommented_changes_nothing, setup,
			teardown),
		cmocka_unit_test(the_manual_has_every_key_with_its_default),
		cmocka_unit_test(the_completions_have_every_key_and_option),
		cmocka_unit_test(
			the_completions_describe_keys_as_the_table_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
