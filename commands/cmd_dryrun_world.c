/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_world.c - one process as a rank of a large job: its environment, and which ranks are
 * worth a run of their own. */
#include <unistd.h>

#include "commands/cmd_dryrun.h"
#include "commands/put.h"
#include "common/vec.h"

int vc_world_put(uint64_t world, uint64_t rank, uint64_t per_node, struct vc_error *err)
{
	const struct { const char *name; uint64_t value; } all[] = {
		{ "VRAMCAST_NULL_WORLD", world },
		{ "WORLD_SIZE", world },
		{ "RANK", rank },
		{ "LOCAL_WORLD_SIZE", per_node },
		{ "LOCAL_RANK", rank % per_node },
		{ "GROUP_RANK", rank / per_node },
		{ "GROUP_WORLD_SIZE", (world + per_node - 1) / per_node },
		{ "ROLE_RANK", rank },
		{ "ROLE_WORLD_SIZE", world },
		{ "MASTER_PORT", 29500 },
		{ "TORCHELASTIC_RESTART_COUNT", 0 },
		{ "TORCHELASTIC_MAX_RESTARTS", 0 },
		/* threads that would look into the store for what other ranks complain about */
		{ "TORCH_NCCL_ENABLE_MONITORING", 0 },
		{ "TORCH_NCCL_DUMP_ON_TIMEOUT", 0 },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		VC_TRY(vc_put_number(all[i].name, all[i].value, err));
	VC_TRY(vc_put("MASTER_ADDR", "127.0.0.1", err));
	return vc_put("TORCHELASTIC_RUN_ID", "none", err);
}

static const char *mark_of(const char *dir, const char *what, uint64_t rank, char *out, size_t n)
{
	snprintf(out, n, "%s/world/%s.%llu", dir, what, (unsigned long long)rank);
	return out;
}

bool vc_world_stale(const char *dir, uint64_t rank)
{
	char path[600];

	return access(mark_of(dir, "stale", rank, path, sizeof path), F_OK) == 0;
}

void vc_world_forget(const char *dir, uint64_t rank)
{
	char path[600];

	unlink(mark_of(dir, "stale", rank, path, sizeof path));
	unlink(mark_of(dir, "asked", rank, path, sizeof path));
}

int vc_world_roles(const char *path, struct vc_role **roles, size_t *n, struct vc_error *err)
{
	char line[256];
	FILE *f = fopen(path, "r");
	*roles = NULL;
	*n = 0;
	while (f && fgets(line, sizeof line, f)) {
		char *what;
		unsigned long long rank = strtoull(line, &what, 10);
		if (!vc_vec_one(*roles, *n)) {
			fclose(f);
			return vc_nomem(err, "the roles of a job");
		}
		struct vc_role *role = &(*roles)[(*n)++];
		role->rank = rank;
		what += *what == ' ';
		snprintf(role->what, sizeof role->what, "%.*s", (int)strcspn(what, "\n"), what);
	}
	if (f)
		fclose(f);
	return 0;
}
