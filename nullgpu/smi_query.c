/* SPDX-License-Identifier: Apache-2.0 */
/* smi_query.c - the stand-in nvidia-smi's --query-gpu and --query-compute-apps. */
#include "nullgpu/smi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct asked {
	const struct vc_smi *m;
	int device;
	const struct vc_smi_process *process; /* NULL: a card is asked for */
};

typedef bool answer(const struct asked *a, char *out); /* false: not known */

#define ANSWER(name, ...) \
	static bool name(const struct asked *a, char *out) \
	{ \
		snprintf(out, VC_SMI_TEXT, __VA_ARGS__); \
		return true; \
	}
#define MIB(bytes) ((unsigned long long)((bytes) / VC_MIB))
#define CARD (a->m->card)

ANSWER(card_name, "%s", CARD->name)
ANSWER(card_uuid, VC_NULL_UUID, a->device)
ANSWER(card_index, "%d", a->device)
ANSWER(card_count, "%d", CARD->devices)
ANSWER(card_bus_id, "00000000:%02X:00.0", a->device + 1)
ANSWER(card_bus, "0x%02X", a->device + 1)
ANSWER(zero, "0x%04X", 0 * a->device)
ANSWER(driver, "%s", a ? VC_NULL_DRIVER : "")
ANSWER(total, "%llu", MIB(CARD->board))
ANSWER(kept, "%llu", MIB(CARD->board - CARD->total))
ANSWER(used, "%llu", MIB(a->m->used[a->device]))
ANSWER(capability, "%d.%d", CARD->cc / 10, CARD->cc % 10)
ANSWER(compute_mode, "%s", a ? "Default" : "")
ANSWER(disabled, "%s", a ? "Disabled" : "")
ANSWER(state, "%s", a ? "P0" : "")
ANSWER(process_id, "%d", a->process->pid)
ANSWER(process_name, "%s", a->process->name)
ANSWER(process_used, "%llu", MIB(a->process->used))

static bool left(const struct asked *a, char *out)
{
	uint64_t taken = a->m->used[a->device];
	snprintf(out, VC_SMI_TEXT, "%llu", MIB(taken < CARD->total ? CARD->total - taken : 0));
	return true;
}

static bool now(const struct asked *a, char *out)
{
	time_t t = time(NULL);
	(void)a;
	return strftime(out, VC_SMI_TEXT, "%Y/%m/%d %H:%M:%S.000", localtime(&t)) > 0;
}

static bool megahertz(int mhz, char *out)
{
	snprintf(out, VC_SMI_TEXT, "%d", mhz);
	return mhz > 0;
}

static bool core_clock(const struct asked *a, char *out)
{
	return megahertz(a->m->sm_mhz, out);
}

static bool memory_clock(const struct asked *a, char *out)
{
	return megahertz(a->m->memory_mhz, out);
}

static bool unknown(const struct asked *a, char *out)
{
	(void)a;
	(void)out;
	return false;
}

/* In NVIDIA's words (nvidia-smi --help-query-gpu); what has two names stands twice. */
static const struct field {
	const char *name, *unit;
	answer *says;
} cards[] = {
	{ "timestamp", "", now }, { "driver_version", "", driver }, { "count", "", card_count },
	{ "name", "", card_name }, { "gpu_name", "", card_name }, { "index", "", card_index },
	{ "uuid", "", card_uuid }, { "gpu_uuid", "", card_uuid },
	{ "pci.bus_id", "", card_bus_id }, { "gpu_bus_id", "", card_bus_id },
	{ "pci.domain", "", zero }, { "pci.bus", "", card_bus },
	{ "memory.total", "MiB", total }, { "memory.reserved", "MiB", kept },
	{ "memory.used", "MiB", used }, { "memory.free", "MiB", left },
	{ "compute_cap", "", capability }, { "compute_mode", "", compute_mode },
	{ "persistence_mode", "", disabled }, { "display_mode", "", disabled },
	{ "display_active", "", disabled }, { "display_attached", "", disabled },
	{ "pstate", "", state }, { "clocks.max.sm", "MHz", core_clock },
	{ "clocks.max.graphics", "MHz", core_clock }, { "clocks.max.gr", "MHz", core_clock },
	{ "clocks.max.memory", "MHz", memory_clock }, { "clocks.max.mem", "MHz", memory_clock },
	{ "clocks.current.sm", "MHz", unknown }, { "clocks.sm", "MHz", unknown },
	{ "clocks.current.graphics", "MHz", unknown }, { "clocks.gr", "MHz", unknown },
	{ "clocks.current.memory", "MHz", unknown }, { "clocks.mem", "MHz", unknown },
	{ "utilization.gpu", "%", unknown }, { "utilization.memory", "%", unknown },
	{ "temperature.gpu", "", unknown }, { "temperature.memory", "", unknown },
	{ "fan.speed", "%", unknown }, { "power.draw", "W", unknown },
	{ "power.draw.average", "W", unknown }, { "power.draw.instant", "W", unknown },
	{ "power.limit", "W", unknown }, { "enforced.power.limit", "W", unknown },
	{ "power.default_limit", "W", unknown }, { "power.max_limit", "W", unknown },
	{ "power.min_limit", "W", unknown }, { "power.management", "", unknown },
	{ "ecc.mode.current", "", unknown }, { "ecc.mode.pending", "", unknown },
	{ "ecc.errors.uncorrected.volatile.total", "", unknown },
	{ "mig.mode.current", "", unknown }, { "mig.mode.pending", "", unknown },
	{ "pcie.link.gen.current", "", unknown }, { "pcie.link.gen.max", "", unknown },
	{ "pcie.link.gen.gpucurrent", "", unknown }, { "pcie.link.width.current", "", unknown },
	{ "pcie.link.width.max", "", unknown }, { "vbios_version", "", unknown },
	{ "serial", "", unknown }, { "gpu_serial", "", unknown },
	{ "clocks_throttle_reasons.active", "", unknown },
	{ "clocks_event_reasons.active", "", unknown }, { NULL, NULL, NULL }
}, apps_of[] = {
	{ "timestamp", "", now }, { "gpu_name", "", card_name }, { "gpu_uuid", "", card_uuid },
	{ "gpu_bus_id", "", card_bus_id }, { "pid", "", process_id },
	{ "process_name", "", process_name }, { "name", "", process_name },
	{ "used_gpu_memory", "MiB", process_used }, { "used_memory", "MiB", process_used },
	{ NULL, NULL, NULL }
};

void vc_smi_fields(void)
{
	for (const struct field *f = cards; f->name; f++)
		printf("%s\n", f->name);
}

enum { MOST = 96 };

struct query {
	const struct field *field[MOST];
	int n;
	bool header, units;
};

static const struct field *find(const struct field *table, const char *name, size_t n)
{
	while (table->name && (strlen(table->name) != n || strncmp(table->name, name, n) != 0))
		table++;
	return table->name ? table : NULL;
}

/* The next word of a list with commas and blanks between; NULL: no more. */
static const char *next_word(const char **at, size_t *n)
{
	*at += strspn(*at, ", ");
	const char *word = *at;
	*n = strcspn(word, ", ");
	*at += *n;
	return *n ? word : NULL;
}

static int read_query(struct query *q, const struct field *table, const char *fields,
		      const char *format)
{
	const char *word;
	bool csv = false;
	size_t n;
	while ((word = next_word(&fields, &n)) != NULL && q->n < MOST) {
		q->field[q->n] = find(table, word, n);
		if (!q->field[q->n++])
			return printf("Field \"%.*s\" is not a valid field to query.\n", (int)n,
				      word), 2;
	}
	while (format && (word = next_word(&format, &n)) != NULL) {
		csv |= n == 3 && strncmp(word, "csv", n) == 0;
		q->header &= n != 8 || strncmp(word, "noheader", n) != 0;
		q->units &= n != 7 || strncmp(word, "nounits", n) != 0;
	}
	if (csv && q->n)
		return 0;
	puts("\"--format=\" switch is missing: nvidia-smi answers queries as --format=csv");
	return 2;
}

static void print_row(const struct query *q, const struct asked *a)
{
	for (int i = 0; i < q->n; i++) {
		const struct field *f = q->field[i];
		char text[VC_SMI_TEXT];
		bool known = f->says(a, text);
		printf("%s%s%s%s", i ? ", " : "", known ? text : "[N/A]",
		       known && q->units && *f->unit ? " " : "",
		       known && q->units ? f->unit : "");
	}
	putchar('\n');
}

static void print_header(const struct query *q)
{
	for (int i = 0; i < q->n; i++) {
		const struct field *f = q->field[i];
		bool unit = q->units && *f->unit;
		printf("%s%s%s%s%s", i ? ", " : "", f->name, unit ? " [" : "", unit ? f->unit : "",
		       unit ? "]" : "");
	}
	putchar('\n');
}

int vc_smi_query(const struct vc_smi *m, const char *fields, const char *format, bool apps)
{
	struct query q = { .header = true, .units = true };
	int rc = read_query(&q, apps ? apps_of : cards, fields, format);
	if (rc)
		return rc;
	if (q.header)
		print_header(&q);
	for (int i = 0; !apps && i < m->card->devices; i++)
		if (m->shown[i])
			print_row(&q, &(struct asked){ .m = m, .device = i });
	for (int i = 0; apps && i < m->processes; i++)
		if (m->shown[m->process[i].device])
			print_row(&q, &(struct asked){ .m = m, .device = m->process[i].device,
						       .process = &m->process[i] });
	return 0;
}
