/* SPDX-License-Identifier: MIT */
/*
 * pty.c - ptys of the jail's own devpts, and their settings
 *
 * Runs in:   init (makes the pairs), warden (sets them before each cell)
 * Trusts:    no setting of a guest: settings are written as a whole
 * Leaves:    descriptors; a pair is gone when both ends are closed
 */
#include "jail/walls/walls.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif
#ifndef TIOCSIG
#define TIOCSIG _IOW('T', 0x36, int)
#endif
#ifndef ECHOKE
#define ECHOKE 0004000
#endif

#define KEY(c) ((c)&0x1f)
/* A line that is written ends with CR LF. */
#define OUTPUT (OPOST | ONLCR)

#define FLAGS (O_RDWR | O_NOCTTY | O_CLOEXEC)

/* TIOCGPTPEER (Linux 4.13) resolves no name, so a guest can put none in the
 * way. */
int pty_open_slave(int master, int flags, struct err *e)
{
	int s = ioctl(master, TIOCGPTPEER, FLAGS | flags);

	return s < 0 ? err_errno(e, "open the other end of a pty") : s;
}

int pty_open_pair(int pts_dirfd, int *master, int *slave, struct err *e)
{
	auto_close int m = openat(pts_dirfd, "ptmx", FLAGS);
	int s, locked = 0;

	if (m < 0)
		return err_errno(e, "open the jail's ptmx");
	if (ioctl(m, TIOCSPTLCK, &locked) < 0)
		return err_errno(e, "unlock a pty");
	s = pty_open_slave(m, 0, e);
	if (s < 0)
		return -1;
	*master = fd_take(&m);
	*slave = s;
	return 0;
}

static int apply_termios(int fd, struct termios *t)
{
	cfsetispeed(t, B38400);
	cfsetospeed(t, B38400);
	return tcsetattr(fd, TCSANOW, t);
}

int pty_set_cooked(int fd, struct err *e)
{
	struct termios t = {
		.c_iflag = ICRNL | IUTF8,
		.c_oflag = OUTPUT,
		.c_cflag = CS8 | CREAD,
		.c_lflag = ISIG | ICANON | IEXTEN | NOFLSH | ECHO | ECHOE |
			   ECHOK | ECHOCTL | ECHOKE,
		/* The others are 0, _POSIX_VDISABLE on Linux: off. */
		.c_cc = {[VINTR] = KEY('C'),
			[VQUIT] = KEY('\\'),
			[VERASE] = 0x7f,
			[VKILL] = KEY('U'),
			[VEOF] = KEY('D'),
			[VWERASE] = KEY('W'),
			[VLNEXT] = KEY('V'),
			[VREPRINT] = KEY('R'),
			[VMIN] = 1},
	};

	if (apply_termios(fd, &t) < 0)
		return err_errno(e, "set the terminal of a cell");
	/* A guest may have stopped output (TCOOFF): termios does not hold that.
	 */
	if (tcflow(fd, TCOON) < 0)
		return err_errno(e, "turn the output of a cell on");
	return 0;
}

static int set_raw(int fd, tcflag_t output, struct err *e)
{
	struct termios t = {.c_oflag = output,
		.c_cflag = CS8 | CREAD,
		.c_cc = {[VMIN] = 1}};

	if (apply_termios(fd, &t) < 0)
		return err_errno(e, "set a terminal raw");
	return 0;
}

int pty_set_raw(int fd, struct err *e)
{
	return set_raw(fd, 0, e);
}

int pty_set_keys(int fd, struct err *e)
{
	return set_raw(fd, OUTPUT, e);
}

int pty_set_size(
	int fd, unsigned short rows, unsigned short cols, struct err *e)
{
	struct winsize w = {.ws_row = rows, .ws_col = cols};

	if (ioctl(fd, TIOCSWINSZ, &w) < 0)
		return err_errno(e, "set the size of a terminal");
	return 0;
}

int pty_interrupt(int master)
{
	return ioctl(master, TIOCSIG, SIGINT);
}
