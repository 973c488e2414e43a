/* SPDX-License-Identifier: Apache-2.0 */
/* smi.c - a stand-in nvidia-smi: the list of cards, the queries that scripts make, the table.
 *
 * Programs start it for a line in their log, and stop where there is none. What it cannot know
 * (temperature, power, utilization) is "[N/A]", as on cards that do not tell. It links none of the
 * stand-in libraries, so it is no process that uses a device. */
#include "nullgpu/smi.h"
#include "nullgpu/usage.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK, USAGE = 2 }; /* of nvidia-smi's exit codes */

struct words {
	const char *query, *apps, *format, *ids;
	bool list, fields;
};

/* ---- what the processes hold ---- */

static void add_process(struct vc_smi *m, const struct vc_null_report *r, int device)
{
	char link[64];
	if (m->processes == VC_SMI_PROCESSES)
		return;
	struct vc_smi_process *p = &m->process[m->processes++];
	*p = (struct vc_smi_process){ .pid = r->pid, .device = device,
		.used = r->device[device].used + m->card->context };
	snprintf(link, sizeof link, "/proc/%d/exe", r->pid);
	ssize_t n = readlink(link, p->name, sizeof p->name - 1);
	p->name[n < 0 ? 0 : n] = 0;
	if (n < 0)
		snprintf(p->name, sizeof p->name, "[Not Found]");
}

static void read_process(struct vc_smi *m, const char *path)
{
	static struct vc_null_report r; /* large */
	FILE *f = fopen(path, "rb");
	bool whole = f && fread(&r, sizeof r, 1, f) == 1 && r.magic == VC_REPORT_MAGIC;
	if (f)
		fclose(f);
	if (!whole || r.ended || kill(r.pid, 0) < 0)
		return;
	for (int i = 0; i < m->card->devices; i++)
		if (r.device[i].peak)
			add_process(m, &r, i);
}

static void add_others(struct vc_smi *m, int device)
{
	unsigned pid;
	uint64_t size;
	for (int i = 0; (size = vc_null_other(device, i, &pid)), pid; i++) {
		m->used[device] += size;
		if (m->processes < VC_SMI_PROCESSES)
			m->process[m->processes++] = (struct vc_smi_process){
				.pid = (int)pid, .device = device, .used = size,
				.name = "[Not Found]" };
	}
}

void vc_smi_look(struct vc_smi *m)
{
	const char *folder = getenv("VRAMCAST_NULL_REPORT");
	const char *clocks = getenv("VRAMCAST_NULL_CLOCKS");
	struct dirent *entry;
	DIR *d = folder ? opendir(folder) : NULL;
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
	for (int i = 0; i < m->processes; i++)
		m->used[m->process[i].device] += m->process[i].used;
	for (int i = 0; i < m->card->devices; i++)
		add_others(m, i);
}

/* ---- what is printed ---- */

static int list_cards(const struct vc_smi *m)
{
	for (int i = 0; i < m->card->devices; i++)
		if (m->shown[i])
			printf("GPU %d: %s (UUID: " VC_NULL_UUID ")\n", i, m->card->name, i);
	return OK;
}

static void rule(const char *line)
{
	puts(line);
}

static void print_card(const struct vc_smi *m, int i)
{
	char memory[40];
	snprintf(memory, sizeof memory, "%7lluMiB / %6lluMiB",
		 (unsigned long long)(m->used[i] / VC_MIB),
		 (unsigned long long)(m->card->board / VC_MIB));
	printf("| %3d  %-30.30s Off |   00000000:%02X:00.0 Off | %20s |\n", i, m->card->name, i + 1,
	       "N/A");
	printf("| %-39s | %22s | %8s %11s |\n", "N/A   N/A   P0              N/A /  N/A", memory,
	       "N/A", "Default");
	printf("|%41s|%24s| %20s |\n", "", "", "N/A");
	rule("+-----------------------------------------+------------------------+"
	     "----------------------+");
}

static void print_processes(const struct vc_smi *m)
{
	int n = 0;
	rule("\n+------------------------------------------------------------------------------"
	     "-----------+");
	printf("| %-87s |\n", "Processes:");
	printf("| %-87s |\n", " GPU   GI   CI              PID   Type   Process name"
	       "                        GPU Memory");
	printf("| %-87s |\n", "       ID   ID                                              "
	       "                 Usage");
	rule("|=========================================================================="
	     "===============|");
	for (int i = 0; i < m->processes; i++) {
		const struct vc_smi_process *p = &m->process[i];
		if (!m->shown[p->device])
			continue;
		printf("| %4d   N/A  N/A %16d %6s   %-28.28s %11lluMiB   |\n", p->device,
		       p->pid, "C", p->name, (unsigned long long)(p->used / VC_MIB));
		n++;
	}
	if (!n)
		printf("| %-87s |\n", " No running processes found");
	rule("+------------------------------------------------------------------------------"
	     "-----------+");
}

static int print_table(const struct vc_smi *m)
{
	time_t now = time(NULL);
	printf("%.24s\n", ctime(&now));
	rule("+------------------------------------------------------------------------------"
	     "-----------+");
	printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", VC_NULL_DRIVER,
	       VC_NULL_DRIVER, "13.0");
	rule("+-----------------------------------------+------------------------+"
	     "----------------------+");
	printf("| %-39s | %-22s | %-20s |\n", "GPU  Name                 Persistence-M",
	       "Bus-Id          Disp.A", "Volatile Uncorr. ECC");
	printf("| %-39s | %22s | %-20s |\n", "Fan  Temp   Perf          Pwr:Usage/Cap",
	       "Memory-Usage", "GPU-Util  Compute M.");
	printf("|%41s|%24s| %20s |\n", "", "", "MIG M.");
	rule("|=========================================+========================+"
	     "======================|");
	for (int i = 0; i < m->card->devices; i++)
		if (m->shown[i])
			print_card(m, i);
	print_processes(m);
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

static bool is(const char *word, const char *brief, const char *full)
{
	return strcmp(word, brief) == 0 || strcmp(word, full) == 0;
}

static int parse(int argc, char **argv, struct words *w)
{
	for (int i = 1; i < argc; i++) {
		if (is(argv[i], "-L", "--list-gpus"))
			w->list = true;
		else if (strcmp(argv[i], "--help-query-gpu") == 0)
			w->fields = true;
		else if (takes(argc, argv, &i, "--query-gpu", &w->query) ||
			 takes(argc, argv, &i, "--query-compute-apps", &w->apps) ||
			 takes(argc, argv, &i, "--format", &w->format) ||
			 takes(argc, argv, &i, "--id", &w->ids) ||
			 takes(argc, argv, &i, "-i", &w->ids))
			continue;
		else
			return printf("nvidia-smi of the null GPU: '%s' is not played; what is: "
				      "-L, --query-gpu=, --query-compute-apps=, --format=, -i, "
				      "and the table without any\n", argv[i]), USAGE;
	}
	return OK;
}

static int choose(struct vc_smi *m, const char *ids)
{
	for (int i = 0; i < m->card->devices; i++)
		m->shown[i] = !ids;
	while (ids && *ids) {
		char *end;
		long i = strtol(ids, &end, 10);
		if (end == ids || i < 0 || i >= m->card->devices || (*end && *end != ','))
			return puts("No devices were found"), 6;
		m->shown[i] = true;
		ids = *end ? end + 1 : end;
	}
	return OK;
}

int main(int argc, char **argv)
{
	struct words w = { 0 };
	static struct vc_smi m;
	int rc = parse(argc, argv, &w);
	if (rc)
		return rc;
	unsetenv("CUDA_VISIBLE_DEVICES"); /* nvidia-smi shows what the machine has */
	m.card = vc_null_card();
	rc = choose(&m, w.ids);
	if (rc)
		return rc;
	vc_smi_look(&m);
	if (w.fields)
		return vc_smi_fields(), OK;
	if (w.query || w.apps)
		return vc_smi_query(&m, w.query ? w.query : w.apps, w.format, !w.query);
	return w.list ? list_cards(&m) : print_table(&m);
}
