/* SPDX-License-Identifier: MIT */
/*
 * process.c - figures of the server's own process, for Prometheus
 *
 * Runs in:   front end; process_open() before it is confined
 * Holds:     two descriptors of /proc, where there is one
 * Leaves:    text in the format of Prometheus, version 0.0.4
 *
 * The names are those of all programs:
 * https://prometheus.io/docs/instrumenting/writing_clientlibs/
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void process_open(struct process *p)
{
	struct timespec now;

	p->memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	p->descriptors = opendir("/proc/self/fd");
	clock_gettime(CLOCK_REALTIME, &now);
	p->start = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void process_close(struct process *p)
{
	fd_drop(&p->memory);
	if (p->descriptors)
		closedir(p->descriptors);
	p->descriptors = NULL;
}

static void print_gauge(
	struct strbuf *b, const char *name, const char *help, double n)
{
	metrics_print_head(b, name, "gauge", help);
	strbuf_printf(b, "%s %.17g\n", name, n);
}

static void print_memory(struct strbuf *b, const struct process *p)
{
	char text[128] = "";
	unsigned long all, resident;
	double page = (double)sysconf(_SC_PAGESIZE);

	if (pread(p->memory, text, sizeof(text) - 1, 0) <= 0 ||
		sscanf(text, "%lu %lu", &all, &resident) != 2)
		return;
	print_gauge(b, "process_virtual_memory_bytes",
		"Virtual memory of the server.", (double)all * page);
	print_gauge(b, "process_resident_memory_bytes",
		"Resident memory of the server.", (double)resident * page);
}

static void print_descriptors(struct strbuf *b, const struct process *p)
{
	const struct dirent *entry;
	struct rlimit most;
	unsigned n = 0;

	if (getrlimit(RLIMIT_NOFILE, &most) == 0)
		print_gauge(b, "process_max_fds",
			"Descriptors that the server may have.",
			(double)most.rlim_cur);
	if (!p->descriptors)
		return;
	rewinddir(p->descriptors);
	while ((entry = readdir(p->descriptors)))
		n += entry->d_name[0] != '.';
	print_gauge(
		b, "process_open_fds", "Descriptors that the server has.", n);
}

void process_print(struct strbuf *b, const struct process *p)
{
	struct rusage u;

	metrics_print_head(b, "process_cpu_seconds_total", "counter",
		"CPU time of the server, without its jails.");
	getrusage(RUSAGE_SELF, &u);
	strbuf_printf(b, "process_cpu_seconds_total %.6f\n",
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) /
				1e6);
	print_memory(b, p);
	print_descriptors(b, p);
	print_gauge(b, "process_start_time_seconds",
		"When the server started, since the epoch.", p->start);
	metrics_print_head(b, "cellblock_build_info", "gauge",
		"Always 1; the label has the version.");
	strbuf_puts(b,
		"cellblock_build_info{version=\"" CELLBLOCK_VERSION "\"} 1\n");
}
