/* SPDX-License-Identifier: MIT */
/*
 * keys.c - the one table of configuration keys
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    no name: it may be a stranger's
 *
 * jail.uids starts at 0x7f000000 because other software uses the ids below:
 * people and services up to 60000, systemd's dynamic users up to 65519,
 * nobody and the invalid ids at 65534 and 65535, subordinate ids from useradd
 * up to 600100000, containers of systemd-nspawn up to 1879048191, directory
 * users mapped by SSSD up to 2000200000. From 2147352576 on systemd keeps
 * foreign ids, and from 2^31 on some programs see a negative number.
 */
#include "config.h"

#define KIB 1024LL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define YEAR (8760 * HOUR)

#define LIMIT(member) offsetof(struct config, limits.member)
#define FIELD(member) offsetof(struct config, member)

/* clang-format off */
/* The words of a CONFIG_WORD: name, value, rank. */
#define WORDS(...) (const struct config_word[]){__VA_ARGS__, {NULL, 0, 0}}

const struct config_key config_keys[CONFIG_NKEYS] = {
	{"cell", "timeout", CONFIG_TIME, LIMIT(cell_wall_ms), "10s", 10, 24 * HOUR,
		TIGHTEN_LOWER, "wall-clock limit of each cell", NULL},
	{"cell", "grace", CONFIG_TIME, LIMIT(cell_grace_ms), "1s", 0, MINUTE,
		TIGHTEN_LOWER, "time from the interrupt to the kill", NULL},
	{"cell", "cpu", CONFIG_TIME, LIMIT(cell_cpu_ms), "10s", 10, 24 * HOUR,
		TIGHTEN_LOWER, "CPU time of each cell, for all its processes together", NULL},
	{"cell", "output", CONFIG_SIZE, LIMIT(output_bytes), "1M", 0, GIB,
		TIGHTEN_LOWER, "output shown of each cell; the rest is only counted", NULL},
	{"cell", "tail", CONFIG_SIZE, LIMIT(tail_bytes), "8K", 0, MIB,
		TIGHTEN_LOWER, "how much of the end is shown when output was cut", NULL},
	{"cell", "source", CONFIG_SIZE, LIMIT(source_bytes), "1M", 1, 16 * MIB,
		TIGHTEN_LOWER, "longest source of a cell", NULL},
	{"cell", "background", CONFIG_WORD, LIMIT(background), "stop", 0, 0,
		TIGHTEN_RANK, "what happens to running processes between cells",
		WORDS({"stop", BACKGROUND_STOP, 1}, {"kill", BACKGROUND_KILL, 0},
			{"run", BACKGROUND_RUN, 2})},
	{"cell", "undo", CONFIG_INT, LIMIT(undo), "5", 0, 16,
		TIGHTEN_LOWER, "most states kept for :undo", NULL},
	{"cell", "checkpoint", CONFIG_WORD, LIMIT(checkpoint), "auto", 0, 0,
		TIGHTEN_ANY, "when to take a checkpoint after a cell",
		WORDS({"auto", CHECKPOINT_AUTO, 0}, {"always", CHECKPOINT_ALWAYS, 0},
			{"never", CHECKPOINT_NEVER, 0})},
	{"session", "memory", CONFIG_SIZE, LIMIT(memory_bytes), "512M", 16 * MIB, 1024 * GIB,
		TIGHTEN_LOWER, "memory for the whole jail", NULL},
	{"session", "processes", CONFIG_INT, LIMIT(processes), "64", 1, 32768,
		TIGHTEN_LOWER, "processes and threads for the whole jail", NULL},
	{"session", "cpus", CONFIG_SHARE, LIMIT(cpus_milli), "1.0", 10, 1024 * 1000,
		TIGHTEN_LOWER, "processor cores for the whole jail", NULL},
	{"session", "idle", CONFIG_TIME, LIMIT(idle_ms), "30m", SECOND, YEAR,
		TIGHTEN_LOWER, "end a session that waits this long for the person", NULL},
	{"session", "lifetime", CONFIG_TIME, LIMIT(lifetime_ms), "12h", SECOND, YEAR,
		TIGHTEN_LOWER, "end a session after this long", NULL},
	{"session", "until", CONFIG_HOUR, FIELD(until_min), "", 0, 24 * 60,
		TIGHTEN_NEVER, "time of day at which all sessions end, such as 18:00", NULL},
	{"session", "per_user", CONFIG_INT, LIMIT(per_user), "4", 1, 1000,
		TIGHTEN_LOWER, "sessions one person may have at once", NULL},
	{"session", "maker", CONFIG_WORD, FIELD(maker), "auto", 0, 0,
		TIGHTEN_RANK, "whether the maker of this host makes the session",
		WORDS({"auto", MAKER_AUTO, 1}, {"require", MAKER_REQUIRE, 0},
			{"off", MAKER_OFF, 2})},
	{"session", "linger", CONFIG_TIME, FIELD(linger_ms), "10m", 0, YEAR,
		TIGHTEN_LOWER, "how long a session goes on without a terminal", NULL},
	{"session", "confirm", CONFIG_BOOL, FIELD(confirm), "yes", 0, 0,
		TIGHTEN_ANY, "Ctrl-D asks before it leaves variables that were not saved", NULL},
	{"session", "attach", CONFIG_BOOL, FIELD(attach), "yes", 0, 0,
		TIGHTEN_LOWER, "a terminal may come to a session that has begun", NULL},
	{"home", "size", CONFIG_SIZE, LIMIT(home_bytes), "64M", 64 * KIB, 1024 * GIB,
		TIGHTEN_LOWER, "how many bytes the home may hold", NULL},
	{"home", "files", CONFIG_INT, LIMIT(home_files), "4096", 16, 10 * 1000 * 1000,
		TIGHTEN_LOWER, "how many files and directories the home may hold", NULL},
	{"home", "skeleton", CONFIG_DIR, FIELD(skeleton), "", 0, 0,
		TIGHTEN_NEVER, "directory copied into the home at the start", NULL},
	{"files", "max_file", CONFIG_SIZE, LIMIT(max_file_bytes), "16M", 0, 1024 * GIB,
		TIGHTEN_LOWER, "largest file in a transfer", NULL},
	{"files", "max_count", CONFIG_INT, LIMIT(max_count), "100", 0, 1000 * 1000,
		TIGHTEN_LOWER, "largest number of files in a transfer", NULL},
	{"files", "pattern", CONFIG_STRING, FIELD(pattern), "**/[!_]*", 1, 255,
		TIGHTEN_ANY, "which files of the home an answer of --eval has", NULL},
	{"files", "timeout", CONFIG_TIME, LIMIT(files_ms), "5s", 1, HOUR,
		TIGHTEN_LOWER, "time to put files into an answer of --eval", NULL},
	{"files", "upload_from", CONFIG_DIRS, FIELD(upload_from), "", 0, 64,
		TIGHTEN_SUBSET, "host directories a locked session may upload from", NULL},
	{"files", "download_to", CONFIG_DIRS, FIELD(download_to), "", 0, 64,
		TIGHTEN_SUBSET, "host directories a locked session may download to", NULL},
	{"files", "remote", CONFIG_BOOL, FIELD(remote), "no", 0, 0,
		TIGHTEN_LOWER, "scp, sftp and rsync over ssh reach the home of a session", NULL},
	{"files", "share", CONFIG_BOOL, FIELD(share), "no", 0, 0,
		TIGHTEN_LOWER, "programs over ssh run in the home of a session", NULL},
	{"python", "executable", CONFIG_DIRS, FIELD(executable), "/usr/bin/python3", 1, 64,
		TIGHTEN_SUBSET, "interpreters; the first is the default", NULL},
	{"python", "packages", CONFIG_DIRS, FIELD(packages), "", 0, 16,
		TIGHTEN_NEVER, "directories of packages, read-only in the jail", NULL},
	{"python", "startup", CONFIG_STRING, FIELD(startup), "", 0, 4096,
		TIGHTEN_ANY, "a cell run at the start of a session", NULL},
	{"python", "env.NAME", CONFIG_VARIABLE, FIELD(env), "", 0, CONFIG_VARIABLES_MAX,
		TIGHTEN_NEVER, "an environment variable of Python", NULL},
	{"python", "recursion", CONFIG_INT, LIMIT(recursion), "1000", 50, 1000 * 1000,
		TIGHTEN_LOWER, "Python's recursion limit", NULL},
	{"jail", "expose", CONFIG_DIRS, FIELD(expose), "", 0, 64,
		TIGHTEN_SUBSET, "host files and directories shown read-only in the jail", NULL},
	{"jail", "network", CONFIG_WORD, LIMIT(network), "none", 0, 0,
		TIGHTEN_RANK, "no interface at all, or the jail's own loopback",
		WORDS({"none", NETWORK_NONE, 0}, {"loopback", NETWORK_LOOPBACK, 1})},
	{"jail", "uids", CONFIG_RANGE, FIELD(uids), "2130706432-2130771967", 1000, 4294967293LL,
		TIGHTEN_NEVER, "host ids for the jails of sessions started by root", NULL},
	{"jail", "require", CONFIG_DEMANDS, FIELD(require), "", 0, 64,
		TIGHTEN_UNION, "what this host must enforce strongly; otherwise nothing starts", NULL},
	{"serve", "concurrent", CONFIG_INT, FIELD(serve.concurrent), "8", 1, 1000,
		TIGHTEN_LOWER, "requests of --serve that run at a time", NULL},
	{"serve", "queue", CONFIG_INT, FIELD(serve.queue), "64", 0, 100000,
		TIGHTEN_LOWER, "requests of --serve that may wait", NULL},
	{"serve", "per_client", CONFIG_INT, FIELD(serve.per_client), "100000", 1, 100000,
		TIGHTEN_LOWER, "requests of one client of --serve at a time", NULL},
	{"serve", "spare", CONFIG_INT, FIELD(serve.spare), "4", 0, 1000,
		TIGHTEN_LOWER, "jails that --serve makes ahead, of each kind", NULL},
	{"serve", "request", CONFIG_SIZE, FIELD(serve.request), "16M", 1024, GIB,
		TIGHTEN_LOWER, "largest request of --serve, but for uploads", NULL},
	{"serve", "clients", CONFIG_INT, FIELD(serve.clients), "4096", 1, 1000 * 1000,
		TIGHTEN_LOWER, "clients of --serve at a time", NULL},
	{"serve", "upload", CONFIG_SIZE, FIELD(serve.upload), "100M", 0, 1024 * GIB,
		TIGHTEN_LOWER, "largest file that is uploaded to --serve", NULL},
	{"serve", "storage", CONFIG_SIZE, FIELD(serve.storage), "1G", 0, 1024 * GIB,
		TIGHTEN_LOWER, "all files that --serve keeps together", NULL},
	{"serve", "files", CONFIG_INT, FIELD(serve.files), "10000", 0, 100000,
		TIGHTEN_LOWER, "how many files --serve keeps", NULL},
	{"serve", "keep", CONFIG_TIME, FIELD(serve.keep_ms), "1h", SECOND, 720 * HOUR,
		TIGHTEN_LOWER, "how long --serve keeps a file", NULL},
	{"serve", "directory", CONFIG_DIR, FIELD(serve.directory), "/var/tmp", 0, 0,
		TIGHTEN_NEVER, "where --serve keeps its files, which have no names", NULL},
	{"serve", "token_file", CONFIG_DIR, FIELD(serve.token_file), "", 0, 0,
		TIGHTEN_NEVER, "file with the tokens of clients of --serve", NULL},
	{"serve", "sessions", CONFIG_INT, FIELD(serve.sessions), "16", 0, 100000,
		TIGHTEN_LOWER, "sessions of --serve at a time", NULL},
	{"serve", "sessions_per_client", CONFIG_INT, FIELD(serve.sessions_per_client), "12", 0, 100000,
		TIGHTEN_LOWER, "sessions of one client of --serve at a time", NULL},
	{"serve", "answers", CONFIG_INT, FIELD(serve.answers), "1000", 2, 1000 * 1000,
		TIGHTEN_LOWER, "answers that --serve keeps for an Idempotency-Key", NULL},
	{"serve", "answers_size", CONFIG_SIZE, FIELD(serve.answers_size), "64M", 0, 1024 * GIB,
		TIGHTEN_LOWER, "all answers that --serve keeps together", NULL},
	{"serve", "answers_keep", CONFIG_TIME, FIELD(serve.answers_keep_ms), "10m", SECOND, 720 * HOUR,
		TIGHTEN_LOWER, "how long --serve keeps an answer", NULL},
	{"serve", "away", CONFIG_TIME, FIELD(serve.away_ms), "1m", 0, 720 * HOUR,
		TIGHTEN_LOWER, "how long a request with an Idempotency-Key goes on without its client", NULL},
	{"serve", "drain", CONFIG_TIME, FIELD(serve.drain_ms), "0", 0, HOUR,
		TIGHTEN_ANY, "how long --serve still serves while /health says that it ends", NULL},
	{"serve", "name", CONFIG_STRING, FIELD(serve.name), "", 0, 64,
		TIGHTEN_ANY, "what the ids of sessions of --serve begin with", NULL},
	{"serve", "log", CONFIG_WORD, FIELD(serve.log), "errors", 0, 0,
		TIGHTEN_NEVER, "which requests --serve logs",
		WORDS({"off", SERVE_LOG_OFF, 0}, {"errors", SERVE_LOG_ERRORS, 0},
			{"requests", SERVE_LOG_REQUESTS, 0}, {"bodies", SERVE_LOG_BODIES, 0})},
	{"serve", "log_to", CONFIG_WORD, FIELD(serve.log_to), "auto", 0, 0,
		TIGHTEN_NEVER, "where the log of --serve goes",
		WORDS({"auto", SERVE_LOG_TO_AUTO, 0}, {"stderr", SERVE_LOG_TO_STDERR, 0},
			{"journal", SERVE_LOG_TO_JOURNAL, 0})},
	{"maker", "memory", CONFIG_SIZE, FIELD(all_memory), "0", 0, 1024 * GIB,
		TIGHTEN_LOWER, "memory for all sessions of the maker together", NULL},
	{"maker", "reserve", CONFIG_SIZE, FIELD(reserve), "128M", 0, 1024 * GIB,
		TIGHTEN_NEVER, "no new session while the host has less memory available", NULL},
	{"maker", "sessions", CONFIG_INT, FIELD(all_sessions), "1000", 1, 65535,
		TIGHTEN_LOWER, "sessions of the maker at a time, for all persons", NULL},
	{"maker", "hosts", CONFIG_DIR, FIELD(hosts), "", 0, 0,
		TIGHTEN_NEVER, "directory in which hosts tell each other who has a session where", NULL},
	{"maker", "reach", CONFIG_STRING, FIELD(reach), "", 0, 120,
		TIGHTEN_NEVER, "name that a person types to reach this host and no other", NULL},
	{"maker", "drain", CONFIG_BOOL, FIELD(drain), "no", 0, 0,
		TIGHTEN_NEVER, "the maker makes no new session; those that run go on", NULL},
	{"spare", "jails", CONFIG_INT, FIELD(spares), "1", 0, 16,
		TIGHTEN_LOWER, "jails that the maker makes ahead, of each kind", NULL},
	{"lab", "course", CONFIG_NAME, FIELD(lab.course), "", 0, 64,
		TIGHTEN_NEVER, "the course that the person is in", NULL},
	{"lab", "exercise", CONFIG_NAME, FIELD(lab.exercise), "", 0, 64,
		TIGHTEN_NEVER, "the exercise that persons hand in now", NULL},
	{"lab", "submit", CONFIG_DIR, FIELD(lab.submit), "", 0, 0,
		TIGHTEN_NEVER, "directory that takes what is handed in; {course} is the course", NULL},
	{"lab", "deadline", CONFIG_MOMENT, FIELD(lab.due_s), "", 0, INT64_MAX,
		TIGHTEN_NEVER, "deadline of the exercise, such as 2026-12-04 18:00", NULL},
	{"lab", "quota", CONFIG_SIZE, FIELD(lab.quota), "16M", 0, 1024 * GIB,
		TIGHTEN_NEVER, "bytes of all versions that a person hands in of an exercise", NULL},
	{"terminal", "escapes", CONFIG_WORD, FIELD(escapes), "safe", 0, 0,
		TIGHTEN_RANK, "which terminal sequences of a cell reach the terminal",
		WORDS({"safe", ESCAPES_SAFE, 1}, {"plain", ESCAPES_PLAIN, 0},
			{"raw", ESCAPES_RAW, 2})},
	{"terminal", "prompt", CONFIG_STRING, FIELD(prompt), "\">>> \"", 0, 64,
		TIGHTEN_ANY, "the prompt", NULL},
	{"terminal", "colour", CONFIG_WORD, FIELD(colour), "auto", 0, 0,
		TIGHTEN_ANY, "colour of the prompt, the input and our own lines",
		WORDS({"auto", COLOUR_AUTO, 0}, {"always", COLOUR_ALWAYS, 0},
			{"never", COLOUR_NEVER, 0})},
	{"terminal", "banner", CONFIG_BOOL, FIELD(banner), "yes", 0, 0,
		TIGHTEN_ANY, "show the version and the limits when a session starts", NULL},
	{"terminal", "keys", CONFIG_WORD, FIELD(keys), "emacs", 0, 0,
		TIGHTEN_ANY, "keys of the editor",
		WORDS({"emacs", KEYS_EMACS, 0}, {"vi", KEYS_VI, 0})},
	{"terminal", "suggest", CONFIG_BOOL, FIELD(suggest), "yes", 0, 0,
		TIGHTEN_ANY, "show how the text went on in an earlier cell, and parameters of calls", NULL},
	{"terminal", "history", CONFIG_BOOL, FIELD(history), "yes", 0, 0,
		TIGHTEN_LOWER, "keep cells for later sessions, and show those of earlier ones", NULL},
	{"terminal", "pictures", CONFIG_WORD, FIELD(pictures), "auto", 0, 0,
		TIGHTEN_ANY, "how pictures are drawn",
		WORDS({"auto", PICTURES_AUTO, 0}, {"blocks", PICTURES_BLOCKS, 0},
			{"no", PICTURES_NO, 0})},
	{"log", "syslog", CONFIG_BOOL, FIELD(syslog), "yes", 0, 0,
		TIGHTEN_HIGHER, "record who had or watched a session, when, and which limit was reached", NULL},
	{"log", "transcript", CONFIG_DIR, FIELD(transcript), "", 0, 0,
		TIGHTEN_NEVER, "directory for transcripts of sessions", NULL},
	{"log", "accounting", CONFIG_DIR, FIELD(accounting), "", 0, 0,
		TIGHTEN_NEVER, "file of who had a session of the maker, and what it used", NULL},
	{"exam", "begin", CONFIG_MOMENT, FIELD(exam_begin_s), "", 0, INT64_MAX,
		TIGHTEN_NEVER, "no session before this time of the host", NULL},
	{"exam", "end", CONFIG_MOMENT, FIELD(exam_end_s), "", 0, INT64_MAX,
		TIGHTEN_NEVER, "end of every session, and no session after it", NULL},
	{"exam", "hand_in", CONFIG_STRING, FIELD(exam_hand_in), "**/*", 0, 255,
		TIGHTEN_NEVER, "which files of the home are handed in when a session ends", NULL},
	{"policy", "locked", CONFIG_BOOL, FIELD(locked), "no", 0, 0,
		TIGHTEN_HIGHER, "the person's own settings can only be stricter", NULL},
	{"policy", "programs", CONFIG_BOOL, FIELD(programs), "yes", 0, 0,
		TIGHTEN_LOWER, "programs of a login run, beside sessions", NULL},
	{"policy", "commands", CONFIG_NAMES, FIELD(commands), "all", 0, 64,
		TIGHTEN_SUBSET, "which : commands are available", NULL},
};
/* clang-format on */

size_t config_keys_index(const struct config_key *key)
{
	return (size_t)(key - config_keys);
}

const struct config_key *config_keys_find(const char *section, const char *name)
{
	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (!strcmp(k->section, section) &&
			(!name || !strcmp(name, k->name) ||
				(k->type == CONFIG_VARIABLE &&
					!strncmp(name, "env.", 4))))
			return k;
	}
	return NULL;
}

const struct config_key *config_keys_find_full(const char *full)
{
	size_t n = strcspn(full, ".");
	char section[32];

	if (!full[n] || n >= sizeof(section))
		return NULL;
	memcpy(section, full, n);
	section[n] = '\0';
	return config_keys_find(section, full + n + 1);
}

/* Levenshtein distance. Names longer than any key are far from all. */
static size_t edit_distance(const char *a, const char *b)
{
	enum { MAX = 32 };
	size_t row[MAX + 1], la = strlen(a), lb = strlen(b);

	if (la > MAX || lb > MAX)
		return SIZE_MAX / 4;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			if (best > row[j] + 1)
				best = row[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[lb];
}

const struct config_key *config_keys_nearest(
	const char *section, const char *name)
{
	const char *word = name ? name : section;
	const struct config_key *best = NULL;
	size_t best_d = SIZE_MAX;

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];
		size_t d = 2 * edit_distance(word, name ? k->name : k->section);

		/* We prefer the exact name of another section to a similar
		 * name of this one. */
		d += name && strcmp(section, k->section) != 0;
		if (d < best_d) {
			best_d = d;
			best = k;
		}
	}
	/* We take one character, or a third of the word, for a slip. */
	best_d /= 2;
	return best_d <= 1 || best_d * 3 <= strlen(word) ? best : NULL;
}
