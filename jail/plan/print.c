/* SPDX-License-Identifier: MIT */
/*
 * print.c - a plan as text
 *
 * Runs in:   front end (--check -v), tests
 * Trusts:    the plan
 * Leaves:    one line an operation: stage, what, on what, how
 */
#include "jail/base/sys.h"
#include "plan.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const stage_names[PLAN_STAGES] = {
	[PLAN_WARDEN] = "warden",
	[PLAN_JAIL] = "jail",
	[PLAN_GUEST] = "guest",
};

static const char *const filter_names[PLAN_FILTERS] = {
	[PLAN_FILTER_INIT] = "init",
	[PLAN_FILTER_GUEST] = "guest",
	[PLAN_FILTER_NOMEM] = "guest, no memory that hides",
};

static const char *const use_names[PLAN_USES] = {
	[PLAN_USE_READ_EXEC] = "read, execute",
	[PLAN_USE_WRITE_EXEC] = "read, write, execute",
	[PLAN_USE_WRITE] = "read, write",
};

static const struct {
	int which;
	const char *name;
} rlimit_names[] = {
	{RLIMIT_CORE, "core"},
	{RLIMIT_DATA, "data"},
	{RLIMIT_FSIZE, "fsize"},
	{RLIMIT_MEMLOCK, "memlock"},
	{RLIMIT_MSGQUEUE, "msgqueue"},
	{RLIMIT_NOFILE, "nofile"},
	{RLIMIT_NPROC, "nproc"},
	{RLIMIT_RTPRIO, "rtprio"},
	{RLIMIT_STACK, "stack"},
};

static const char *rlimit_name(int which)
{
	for (size_t i = 0; i < COUNT(rlimit_names); i++)
		if (rlimit_names[i].which == which)
			return rlimit_names[i].name;
	return "?";
}

/* Control characters and backslashes as escapes: a line stays a line. */
static void print_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\n')
			fputs("\\n", f);
		else if (c < 0x20 || c == 0x7f || c == '\\')
			fprintf(f, "\\x%02x", c);
		else
			fputc(c, f);
	}
}

static void print_attrs(FILE *f, unsigned attrs)
{
	static const struct {
		unsigned attr;
		const char *name;
	} names[] = {
		{SYS_ATTR_RDONLY, "ro"},
		{SYS_ATTR_NOSUID, "nosuid"},
		{SYS_ATTR_NODEV, "nodev"},
		{SYS_ATTR_NOEXEC, "noexec"},
	};
	const char *sep = "  ";

	for (size_t i = 0; i < COUNT(names); i++) {
		if (!(attrs & names[i].attr))
			continue;
		fprintf(f, "%s%s", sep, names[i].name);
		sep = ",";
	}
}

static void print_mount(FILE *f, const struct plan_op *op)
{
	print_text(f, op->target ? op->target : op->source);
	if (op->options)
		fprintf(f, "  %s", op->options);
	print_attrs(f, op->attrs);
}

/* With where it is on the host, if that is elsewhere. */
static void print_bind(FILE *f, const struct plan_op *op)
{
	print_text(f, op->target);
	if (op->source && strcmp(op->source, op->target) != 0) {
		fputs("  from ", f);
		print_text(f, op->source);
	}
	print_attrs(f, op->attrs);
	if (op->flags & PLAN_F_REMOUNT)
		fputs(", one by one", f);
}

static void print_keep(FILE *f, const struct plan_op *op)
{
	(op->source ? print_bind : print_mount)(f, op);
}

static void print_pair(FILE *f, const struct plan_op *op)
{
	print_text(f, op->target);
	fputs("  ", f);
	print_text(f, op->source);
}

static void print_target(FILE *f, const struct plan_op *op)
{
	print_text(f, op->target);
}

static void print_copy(FILE *f, const struct plan_op *op)
{
	fputs("copy of ", f);
	print_text(f, op->source);
}

static void print_number(FILE *f, const struct plan_op *op)
{
	fprintf(f, "%" PRId64, op->number);
}

static void print_octal(FILE *f, const struct plan_op *op)
{
	fprintf(f, "%04" PRIo64, (uint64_t)op->number);
}

static void print_proc(FILE *f, const struct plan_op *op)
{
	print_mount(f, op);
	fputs(op->number ? "; or fail" : "; or without", f);
}

static void print_rlimit(FILE *f, const struct plan_op *op)
{
	fprintf(f, "%s  %" PRId64, rlimit_name(op->which), op->number);
}

static void print_allow(FILE *f, const struct plan_op *op)
{
	print_text(f, op->target);
	fprintf(f, "  %s", use_names[op->which]);
}

static void print_abi(FILE *f, const struct plan_op *op)
{
	fprintf(f, "ABI %" PRId64, op->number);
}

static void print_seccomp(FILE *f, const struct plan_op *op)
{
	fputs(filter_names[op->which], f);
}

static const struct {
	const char *name;
	void (*rest)(FILE *, const struct plan_op *);
} printers[] = {
	[PLAN_IDENTITY] = {"identity", print_number},
	[PLAN_PRIVATE] = {"private", NULL},
	[PLAN_HOME_MAKE] = {"home", print_mount},
	[PLAN_HOME_KEEP] = {"keep", print_keep},
	[PLAN_HOSTNAME] = {"hostname", print_target},
	[PLAN_LOOPBACK] = {"loopback", NULL},
	[PLAN_HOME_COPY] = {"home", print_copy},
	[PLAN_ROOT] = {"root", print_mount},
	[PLAN_LINK] = {"link", print_pair},
	[PLAN_FILE] = {"file", print_pair},
	[PLAN_BIND] = {"bind", print_bind},
	[PLAN_SHOW] = {"show", print_bind},
	[PLAN_TMPFS] = {"tmpfs", print_mount},
	[PLAN_DEVPTS] = {"devpts", print_mount},
	[PLAN_PROC] = {"proc", print_proc},
	[PLAN_HOME_SHOW] = {"home", print_target},
	[PLAN_RESTRICT] = {"restrict", print_bind},
	[PLAN_PIVOT] = {"pivot", NULL},
	[PLAN_RLIMIT] = {"rlimit", print_rlimit},
	[PLAN_DROP] = {"drop", NULL},
	[PLAN_UNDUMPABLE] = {"undumpable", NULL},
	[PLAN_OOM] = {"oom", print_number},
	[PLAN_NICE] = {"nice", print_number},
	[PLAN_UMASK] = {"umask", print_octal},
	[PLAN_CHDIR] = {"chdir", print_target},
	[PLAN_ALLOW] = {"allow", print_allow},
	[PLAN_LANDLOCK] = {"landlock", print_abi},
	[PLAN_SECCOMP] = {"seccomp", print_seccomp},
};

void plan_print(const struct plan *p, FILE *f)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct plan_op *op = &p->ops[i];

		fprintf(f, "%-8s", stage_names[op->stage]);
		if (printers[op->type].rest) {
			fprintf(f, "%-11s", printers[op->type].name);
			printers[op->type].rest(f, op);
		} else {
			fputs(printers[op->type].name, f);
		}
		fputc('\n', f);
	}
}
