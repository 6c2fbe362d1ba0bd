/* SPDX-License-Identifier: MIT */
/*
 * sshd.c - what this host's sshd lets an account do beside its session
 *
 * Runs in:   front end of --check, as root
 * Trusts:    sshd, and its configuration, which are root's
 * Leaves:    nothing: each sshd that we ask prints its settings, and ends
 *
 * Where cellblock is the account's shell and nothing forces a command, sshd
 * still forwards ports and sockets for the account: that asks no shell. We ask
 * sshd itself, because only sshd knows what all its files say together.
 */
#include "run.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Most accounts that we ask about: each costs a start of sshd. */
#define ACCOUNTS_MAX 16
#define SETTINGS_MAX (256 * 1024)

static const char *const programs[] = {
	"/usr/local/sbin/sshd", "/usr/sbin/sshd", "/usr/bin/sshd"};

/* Lines of sshd -T that shut one way each; the first shuts all. */
static const char *const shuts_all = "\ndisableforwarding yes\n";
static const char *const shuts_one[] = {"\nallowtcpforwarding no\n",
	"\nallowstreamlocalforwarding no\n", "\nallowagentforwarding no\n",
	"\nx11forwarding no\n", "\npermittunnel no\n"};

static const char *find_sshd(void)
{
	for (size_t i = 0; i < COUNT(programs); i++)
		if (access(programs[i], X_OK) == 0)
			return programs[i];
	return NULL;
}

/* Ask sshd for its settings for this account: text that begins with a newline
 * (caller frees); NULL: it does not say. */
static char *read_settings(const char *sshd, const char *user)
{
	char *text = calloc(1, SETTINGS_MAX), who[128];
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	snprintf(who, sizeof(who), "user=%.60s,host=localhost,addr=127.0.0.1",
		user);
	if (!text || pipe2(ends, O_CLOEXEC) < 0) {
		free(text);
		return NULL;
	}
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execl(sshd, sshd, "-T", "-C", who, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	text[0] = '\n';
	n = pid < 0 ? -1 : io_read_full(ends[0], text + 1, SETTINGS_MAX - 2);
	close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || n < 0 || status) {
		free(text);
		return NULL;
	}
	return text;
}

static bool forwards(const char *settings)
{
	if (strstr(settings, shuts_all))
		return false;
	for (size_t i = 0; i < COUNT(shuts_one); i++)
		if (!strstr(settings, shuts_one[i]))
			return true;
	return false;
}

const char *sshd_tell(char *buf, size_t size)
{
	const char *sshd = geteuid() == 0 ? find_sshd() : NULL;
	const struct passwd *pw;
	int asked = 0, open = 0;

	if (!sshd)
		return NULL;
	setpwent();
	while (asked < ACCOUNTS_MAX && (pw = getpwent())) {
		auto_free char *settings = NULL;

		if (!run_is_shell(pw->pw_shell))
			continue;
		asked++;
		settings = read_settings(sshd, pw->pw_name);
		if (!settings || !forwards(settings) || open++)
			continue;
		snprintf(buf, size,
			"sshd forwards ports for %.60s, whose shell this "
			"program is (ssh -N -L): /etc/ssh/sshd_config.d/"
			"cellblock.conf shuts that (see the file of that name "
			"in the documentation)",
			pw->pw_name);
	}
	endpwent();
	return open ? buf : NULL;
}
