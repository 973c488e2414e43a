/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_buffers.c - NCCL's own buffers: outside PyTorch's allocator, by topology and version.
 *
 * VRAMCAST_NULL_NCCL bytes are charged for each communicator of more than one rank (0 unless set,
 * and then the report names what they can be at most). */
#include "nullgpu/nccl.h"
#include "nullgpu/null.h"

/* NCCL's source (2.7 to 2.28; src/init.cc computeBuffSizes, src/include/device.h): a buffer for
 * each protocol, LL of 8 lines x 512 threads x 8 steps x 16 bytes, LL128 of 120 elements x 640
 * threads x 8 steps x 8 bytes, simple of 4 MiB. The receiver of a connection holds the three
 * (transport/p2p.cc), rounded up to 2 MiB (CUDA_IPC_MIN): 10 MiB; the sender holds 2 MiB, with
 * peer-to-peer reads also the simple one: then 6 and 6. Its log shows the same 10,485,760 and
 * 2,097,152 (NVIDIA/nccl#1685). */
#define BUFFERS (524288ull + 4915200ull + 4194304ull)
#define PAGE (2ull << 20)
#define CONNECTION ((BUFFERS + PAGE - 1) / PAGE * PAGE + PAGE)
/* Rings and trees lead to two neighbours, in both directions, on every channel. The search finds
 * up to MAXCHANNELS/2 = 16 rings where there is NVLink, and doubles them (graph/connect.cc); over
 * PCIe one or two. 32 channels make 768 MiB; 544 (2 ranks) and 688 MiB (more) were measured on
 * four A100 (NVIDIA/nccl#964). */
#define CHANNELS_PCIE 4
#define CHANNELS_NVLINK 32
/* NVLink SHARP (transport/nvls.cc; 9.0 and newer, more than two cards): 16 channels x 2 x 8 steps
 * of 128 KiB for each head, one a card of those that share the switches (nvlsPerRankSize), and of
 * these there are 32 at most (NCCL_MAX_NVLS_ARITY in src/include/device.h; 8 before 2.20). */
#define NVLS_PER_HEAD (16ull * 2 * 8 * (128 << 10))
#define NVLS_HEADS 32
/* Point-to-point operations connect each pair of ranks by up to 32 channels more: 3.28 GiB were
 * measured for the seven peers of eight H100 (NVIDIA/nccl#1685), 15 MiB each, which is a
 * connection either way: 10 MiB to receive, 6 to send by reads. */
#define PEER_CHANNEL (16ull << 20)

/* Compute capabilities of cards that come with NVLink: V100, A100, H100 and B200. */
static bool may_have_nvlink(void)
{
	int cc = vc_null_card()->cc;
	return cc == 70 || cc == 80 || cc == 90 || cc == 100 || cc == 103;
}

static uint64_t channels(void)
{
	return may_have_nvlink() ? CHANNELS_NVLINK : CHANNELS_PCIE;
}

void vc_nccl_meet(struct vc_nccl *c, int peer)
{
	if (peer == c->rank || c->met[peer] || getenv("VRAMCAST_NULL_NCCL"))
		return;
	c->met[peer] = 1;
	vc_null_beside("NCCL's connections for point-to-point operations",
		       PEER_CHANNEL * channels());
}

int vc_nccl_charge(int device, int ranks)
{
	const char *s = getenv("VRAMCAST_NULL_NCCL");
	uint64_t size = s ? strtoull(s, NULL, 0) : 0, at, most;
	if (size)
		return vc_null_alloc(device, size, &at) ? NCCL_CUDA_ERROR : 0;
	most = 2 * CONNECTION * channels();
	if (ranks > 2 && may_have_nvlink() && vc_null_card()->cc >= 90)
		most += NVLS_PER_HEAD * (uint64_t)(ranks < NVLS_HEADS ? ranks : NVLS_HEADS);
	vc_null_beside("NCCL's own buffers", most);
	return 0;
}
