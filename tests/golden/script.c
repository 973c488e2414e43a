/* SPDX-License-Identifier: Apache-2.0 */
/* script.c - see script.h */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"

void die(const char *what, const char *detail)
{
	fprintf(stderr, "replay: %s: %s\n", what, detail);
	exit(2);
}

char *slurp(const char *path)
{
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_open(path, &err);
	char *s = malloc(1);
	size_t n = 0, got;

	if (!in || !s)
		die(path, err.message);
	for (;;) {
		const uint8_t *p = vc_input_peek(in, 65536, &got, &err);

		if (!p && err.status)
			die(path, err.message);
		if (!got)
			break;
		s = realloc(s, n + got + 1);
		if (!s)
			die(path, "out of memory");
		memcpy(s + n, p, got);
		n += got;
		vc_input_skip(in, got);
	}
	vc_input_close(in);
	s[n] = '\0';
	return s;
}

static uint64_t stream_number(const char **p)
{
	char *end;
	uint64_t v;

	while (**p == ' ')
		(*p)++;
	if (**p == '*') {
		(*p)++;
		return UINT64_MAX;
	}
	v = strtoull(*p, &end, 0);
	*p = end;
	return v;
}

static void read_op(struct script *sc, char *line)
{
	struct op o = { .kind = line[0], .line = line };
	const char *p = line + 1;

	switch (o.kind) {
	case 'm':
	case 'a':
		o.a = stream_number(&p);
		o.b = stream_number(&p);
		o.c = o.kind == 'a' ? strtoull(p, NULL, 16) : stream_number(&p);
		if (o.a > sc->max_id)
			sc->max_id = o.a;
		break;
	case 'r':
	case 'b':
	case 'g':
		o.a = stream_number(&p);
		o.b = stream_number(&p);
		break;
	case 's':
		break;
	default:
		o.a = stream_number(&p);
	}
	while (*p == ' ')
		p++;
	o.rest = p;
	sc->op = realloc(sc->op, (sc->ops + 1) * sizeof(*sc->op));
	if (!sc->op)
		die("out of memory", "script");
	sc->op[sc->ops++] = o;
}

static void read_process(struct script *sc, const char *rest)
{
	struct vc_process *p = &sc->process[sc->device.processes++];

	p->self = !strncmp(rest, "self", 4);
	p->pid = p->self ? 0 : (uint32_t)strtoul(rest, NULL, 10);
	p->bytes = strtoull(strchr(rest, ' ') + 1, NULL, 10);
}

/* "mix 3" is the third drawn order of slots. */
static void read_addresses(struct script *sc, const char *rest)
{
	static const char *const va[] = { "inc", "dec", "fit", "mix", "list", "window", "up",
					  "context" };
	size_t n = strcspn(rest, " "), k = 0, all = sizeof(va) / sizeof(*va);

	while (k < all && (strlen(va[k]) != n || strncmp(rest, va[k], n) != 0))
		k++;
	if (k == all)
		die("no such order of addresses", rest);
	sc->device.va = (enum vc_va_policy)k;
	sc->device.order = (unsigned)strtoul(rest + n, NULL, 10);
}

static void read_header(struct script *sc, const char *line)
{
	const char *rest = strchr(line, ' ');

	rest = rest ? rest + 1 : "";
	if (!strncmp(line, "total ", 6))
		sc->device.total = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "proptotal ", 10))
		sc->device.prop_total = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "other ", 6))
		sc->device.others = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "events ", 7))
		sc->automatic = !strcmp(rest, "auto");
	else if (!strcmp(line, "devices 2"))
		sc->devices = 2;
	else if (!strncmp(line, "conf ", 5))
		sc->conf = (char *)(uintptr_t)rest;
	else if (!strncmp(line, "proc ", 5))
		read_process(sc, rest);
	else if (!strncmp(line, "va ", 3))
		read_addresses(sc, rest);
	if (!strncmp(line, "addr ", 5)) {
		sc->addr = realloc(sc->addr, (sc->addrs + 1) * sizeof(*sc->addr));
		if (!sc->addr)
			die("out of memory", "script");
		sc->addr[sc->addrs++] = strtoull(rest, NULL, 10);
	}
}

void script_fini(struct script *sc)
{
	free(sc->text);
	free(sc->op);
	free(sc->addr);
	*sc = (struct script){ 0 };
}

void script_parse(struct script *sc, char *text, const char *name)
{
	*sc = (struct script){ .text = text, .automatic = true, .devices = 1 };
	snprintf(sc->name, sizeof(sc->name), "%s", name);
	for (char *line = sc->text; *line; ) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (line[0] && (line[1] == ' ' || !line[1]))
			read_op(sc, line);
		else if (line[0] && line[0] != '#')
			read_header(sc, line);
		if (!end)
			break;
		line = end + 1;
	}
	sc->device.process = sc->process;
}
