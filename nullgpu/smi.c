/* SPDX-License-Identifier: Apache-2.0 */
/* smi.c - a stand-in nvidia-smi: the list of cards and the queries that scripts make.
 *
 * Programs start it for a line in their log or for the size of the card, and stop where there is
 * none. What it cannot know (temperature, power, utilization) is "[N/A]", as on cards that do not
 * tell. It links none of the stand-in libraries, so it is no process that uses a device. */
#include <dirent.h>
#include <signal.h>
#include <time.h>

#include "nullgpu/null.h"
#include "nullgpu/usage.h"

enum { OK, USAGE = 2, NO_DEVICE = 6, TEXT = 160, FIELDS = 96 }; /* the first: its exit codes */

struct smi {
	const struct vc_null_card *card;
	bool shown[VC_NULL_DEVICES]; /* -i names devices */
	uint64_t used[VC_NULL_DEVICES];
	int sm_mhz, memory_mhz; /* 0: not known */
};

/* ---- what the processes hold ---- */

static void read_process(struct smi *m, const char *path)
{
	static struct vc_null_report r; /* large */
	FILE *f = fopen(path, "rb");
	bool whole = f && fread(&r, sizeof r, 1, f) == 1 && r.magic == VC_REPORT_MAGIC;
	if (f)
		fclose(f);
	if (!whole || r.ended || kill(r.pid, 0) < 0)
		return;
	for (int i = 0; i < m->card->devices; i++)
		m->used[i] += r.device[i].peak ? r.device[i].used + m->card->context : 0;
}

/* Out of what the processes of this dry run leave in their private folder. */
static void look(struct smi *m)
{
	const char *folder = getenv("VRAMCAST_NULL_REPORT");
	const char *clocks = getenv("VRAMCAST_NULL_CLOCKS");
	struct dirent *entry;
	DIR *d = folder ? opendir(folder) : NULL;
	unsigned pid;
	if (clocks)
		sscanf(clocks, "%d,%d", &m->sm_mhz, &m->memory_mhz);
	while (d && (entry = readdir(d)) != NULL) {
		char path[1200];
		if (strncmp(entry->d_name, "report.", 7) != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		read_process(m, path);
	}
	if (d)
		closedir(d);
	for (int i = 0; i < m->card->devices; i++)
		for (int k = 0; m->used[i] += vc_null_other(i, k, &pid), pid; k++)
			;
}

/* ---- fields, in NVIDIA's words (nvidia-smi --help-query-gpu) ---- */

enum what { NOW, DRIVER, COUNT, NAME, INDEX, UUID, BUS_ID, TOTAL, RESERVED, USED, FREE, CAPABILITY,
	MODE, STATE, SM_CLOCK, MEMORY_CLOCK, UNKNOWN };

static const struct field { const char *name, *unit; enum what what; } fields[] = {
	{ "timestamp", "", NOW }, { "driver_version", "", DRIVER }, { "count", "", COUNT },
	{ "name", "", NAME }, { "gpu_name", "", NAME }, { "index", "", INDEX },
	{ "uuid", "", UUID }, { "gpu_uuid", "", UUID }, { "pci.bus_id", "", BUS_ID },
	{ "gpu_bus_id", "", BUS_ID }, { "memory.total", "MiB", TOTAL },
	{ "memory.reserved", "MiB", RESERVED }, { "memory.used", "MiB", USED },
	{ "memory.free", "MiB", FREE }, { "compute_cap", "", CAPABILITY },
	{ "compute_mode", "", MODE }, { "pstate", "", STATE }, { "clocks.max.sm", "MHz", SM_CLOCK },
	{ "clocks.max.graphics", "MHz", SM_CLOCK }, { "clocks.max.memory", "MHz", MEMORY_CLOCK },
	{ "utilization.gpu", "%", UNKNOWN }, { "utilization.memory", "%", UNKNOWN },
	{ "power.draw", "W", UNKNOWN }, { "power.limit", "W", UNKNOWN },
};

static const struct field *find(const char *name, size_t n)
{
	static const struct field other = { "", "", UNKNOWN };
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (strlen(fields[i].name) == n && strncmp(name, fields[i].name, n) == 0)
			return &fields[i];
	return &other;
}

static int mebibytes(char *out, uint64_t bytes)
{
	return snprintf(out, TEXT, "%llu", (unsigned long long)(bytes / VC_MIB));
}

/* False: not known. */
static bool answer(const struct smi *m, int i, enum what what, char *out)
{
	const struct vc_null_card *c = m->card;
	uint64_t used = m->used[i];
	time_t now = time(NULL);
	switch (what) {
	case NOW: return strftime(out, TEXT, "%Y/%m/%d %H:%M:%S.000", localtime(&now)) > 0;
	case DRIVER: return snprintf(out, TEXT, "%s", VC_NULL_DRIVER) > 0;
	case COUNT: return snprintf(out, TEXT, "%d", c->devices) > 0;
	case NAME: return snprintf(out, TEXT, "%s", c->name) > 0;
	case INDEX: return snprintf(out, TEXT, "%d", i) > 0;
	case UUID: return snprintf(out, TEXT, VC_NULL_UUID, i) > 0;
	case BUS_ID: return snprintf(out, TEXT, "00000000:%02X:00.0", i + 1) > 0;
	case TOTAL: return mebibytes(out, c->board) > 0;
	case RESERVED: return mebibytes(out, c->board - c->total) > 0;
	case USED: return mebibytes(out, used) > 0;
	case FREE: return mebibytes(out, used < c->total ? c->total - used : 0) > 0;
	case CAPABILITY: return snprintf(out, TEXT, "%d.%d", c->cc / 10, c->cc % 10) > 0;
	case MODE: return snprintf(out, TEXT, "Default") > 0;
	case STATE: return snprintf(out, TEXT, "P0") > 0;
	case SM_CLOCK: return snprintf(out, TEXT, "%d", m->sm_mhz) > 0 && m->sm_mhz > 0;
	case MEMORY_CLOCK: return snprintf(out, TEXT, "%d", m->memory_mhz) > 0 && m->memory_mhz > 0;
	default: return false;
	}
}

/* ---- rows of comma-separated values ---- */

struct query {
	struct { const char *name; int n; const struct field *field; } column[FIELDS];
	int n;
	bool header, units;
};

/* The next word of a list with commas and blanks between; NULL: no more. */
static const char *next_word(const char **at, size_t *n)
{
	*at += strspn(*at, ", ");
	const char *word = *at;
	*n = strcspn(word, ", ");
	*at += *n;
	return *n ? word : NULL;
}

static bool read_query(struct query *q, const char *names, const char *format)
{
	const char *word;
	bool csv = false;
	size_t n;
	for (; q->n < FIELDS && (word = next_word(&names, &n)) != NULL; q->n++) {
		q->column[q->n].name = word;
		q->column[q->n].n = (int)n;
		q->column[q->n].field = find(word, n);
	}
	while (format && (word = next_word(&format, &n)) != NULL) {
		csv |= n == 3 && strncmp(word, "csv", n) == 0;
		q->header &= n != 8 || strncmp(word, "noheader", n) != 0;
		q->units &= n != 7 || strncmp(word, "nounits", n) != 0;
	}
	return csv && q->n;
}

static void print_row(const struct query *q, const struct smi *m, int device)
{
	for (int i = 0; i < q->n; i++) {
		const struct field *f = q->column[i].field;
		char text[TEXT];
		bool known = answer(m, device, f->what, text), unit = q->units && *f->unit;
		printf("%s%s%s%s", i ? ", " : "", known ? text : "[N/A]", known && unit ? " " : "",
		       known && unit ? f->unit : "");
	}
	putchar('\n');
}

static int answer_query(const struct smi *m, const char *names, const char *format)
{
	struct query q = { .header = true, .units = true };
	if (!read_query(&q, names, format))
		return puts("\"--format=\" switch is missing: nvidia-smi answers queries as "
			    "--format=csv"), USAGE;
	for (int i = 0; q.header && i < q.n; i++) {
		bool unit = q.units && *q.column[i].field->unit;
		printf("%s%.*s%s%s%s%s", i ? ", " : "", q.column[i].n, q.column[i].name,
		       unit ? " [" : "", unit ? q.column[i].field->unit : "", unit ? "]" : "",
		       i + 1 == q.n ? "\n" : "");
	}
	for (int i = 0; i < m->card->devices; i++)
		if (m->shown[i])
			print_row(&q, m, i);
	return OK;
}

/* ---- the command line ---- */

static bool takes(int argc, char **argv, int *i, const char *name, const char **value)
{
	size_t n = strlen(name);
	if (strncmp(argv[*i], name, n) != 0)
		return false;
	if (argv[*i][n] == '=') {
		*value = argv[*i] + n + 1;
		return true;
	}
	if (argv[*i][n] || *i + 1 == argc)
		return false;
	*value = argv[++*i];
	return true;
}

static bool choose(struct smi *m, const char *ids)
{
	for (int i = 0; i < m->card->devices; i++)
		m->shown[i] = !ids;
	while (ids && *ids) {
		char *end;
		long i = strtol(ids, &end, 10);
		if (end == ids || i < 0 || i >= m->card->devices || (*end && *end != ','))
			return false;
		m->shown[i] = true;
		ids = *end ? end + 1 : end;
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *query = NULL, *format = NULL, *ids = NULL;
	static struct smi m;
	bool list = false;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus"))
			list = true;
		else if (!takes(argc, argv, &i, "--query-gpu", &query) &&
			 !takes(argc, argv, &i, "--format", &format) &&
			 !takes(argc, argv, &i, "--id", &ids) && !takes(argc, argv, &i, "-i", &ids))
			return printf("nvidia-smi of the null GPU: '%s' is not played; what is: "
				      "-L, --query-gpu=, --format= and -i\n", argv[i]), USAGE;
	}
	unsetenv("CUDA_VISIBLE_DEVICES"); /* nvidia-smi shows what the machine has */
	m.card = vc_null_card();
	if (!choose(&m, ids))
		return puts("No devices were found"), NO_DEVICE;
	look(&m);
	for (int i = 0; list && i < m.card->devices; i++)
		if (m.shown[i])
			printf("GPU %d: %s (UUID: " VC_NULL_UUID ")\n", i, m.card->name, i);
	if (list)
		return OK;
	if (query)
		return answer_query(&m, query, format);
	/* The table that is asked for without a query: the same figures, without its frame. */
	return answer_query(&m, "index,name,memory.used,memory.total", "csv");
}
