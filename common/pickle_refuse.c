/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_refuse.c - see pickle_refuse.h */
#include "common/pickle_refuse.h"

#define LINE_MAX_BYTES ((size_t)1 << 20) /* names stand in lines */

/* One line, without its end, lent as text of *n bytes. */
static int line(struct pickle_machine *m, const char **text, size_t *n)
{
	const uint8_t *nl;

	while (!(nl = m->p < m->end ? memchr(m->p, '\n', (size_t)(m->end - m->p)) : NULL)) {
		size_t have = (size_t)(m->end - m->p);

		if (have > LINE_MAX_BYTES)
			return pickle_bad(m, "a line without end");
		VC_TRY(pickle_need_slowly(m, have + 1));
	}
	*text = (const char *)m->p;
	*n = (size_t)(nl - m->p);
	m->p = nl + 1;
	return 0;
}

static const char *printable(const char *s, size_t n, char *to, size_t cap)
{
	size_t i;

	for (i = 0; i < n && i + 1 < cap; i++)
		to[i] = s[i] >= ' ' && s[i] < 127 ? s[i] : '?';
	to[i] = '\0';
	return to;
}

static int refuse_name(struct pickle_machine *m, const char *module, const char *name, uint64_t at)
{
	if (!strncmp(module, "torch._utils", 12))
		return vc_fail(m->err, VC_EFORMAT, "the pickle holds tensors (%s.%s at byte "
			       "%llu), as checkpoints do, and no recording", module, name,
			       (unsigned long long)at);
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run %s.%s (byte %llu); "
		       "vramcast reads data only and never executes what a file names", module,
		       name, (unsigned long long)at);
}

static int refuse_global(struct pickle_machine *m)
{
	char module[128], name[128];
	uint64_t at = pickle_offset(m) - 1;
	const char *s;
	size_t n;
	VC_TRY(line(m, &s, &n));
	printable(s, n, module, sizeof(module));
	VC_TRY(line(m, &s, &n));
	return refuse_name(m, module, printable(s, n, name, sizeof(name)), at);
}

static int refuse_stack_global(struct pickle_machine *m)
{
	char text[2][128];

	for (size_t i = 0; i < 2; i++) {
		const struct vc_pickle_value *v = m->n >= 2 ? &m->stack[m->n - 2 + i] : NULL;
		const char *s = v && v->type == VC_PV_TEXT ? m->b->name(m->b->arg, v->ref) : "?";

		printable(s, strlen(s), text[i], sizeof(text[i]));
	}
	return refuse_name(m, text[0], text[1], pickle_offset(m) - 1);
}

static int refuse(struct pickle_machine *m, const char *what)
{
	return vc_fail(m->err, VC_EFORMAT, "the pickle wants Python to run code (%s at byte %llu); "
		       "vramcast reads data only and never executes what a file names", what,
		       (unsigned long long)pickle_offset(m) - 1);
}

int pickle_refuse(struct pickle_machine *m, uint8_t op)
{
	switch (op) {
	case 'c': case 'i': return refuse_global(m);
	case 'R': return refuse(m, "REDUCE");
	case 'b': return refuse(m, "BUILD");
	case 'o': return refuse(m, "OBJ");
	case 'P': case 'Q': return refuse(m, "a persistent id");
	case 0x81: case 0x92: return refuse(m, "NEWOBJ");
	case 0x82: case 0x83: case 0x84: return refuse(m, "an extension");
	case 0x93: return refuse_stack_global(m);
	case 0x97: case 0x98: return refuse(m, "an out-of-band buffer");
	case 'L': case 'I': case 'F': case 'S': case 'V': case 'g': case 'p':
		return vc_fail(m->err, VC_ENOSUP, "the pickle has numbers or texts as lines "
			       "(protocol 0 or 1, byte %llu), which no PyTorch writes: save it "
			       "with protocol 2 or newer",
			       (unsigned long long)pickle_offset(m) - 1);
	default:
		return vc_fail(m->err, VC_EFORMAT,
			       "damaged pickle at byte %llu: 0x%02x is no pickle operation",
			       (unsigned long long)pickle_offset(m) - 1, op);
	}
}
