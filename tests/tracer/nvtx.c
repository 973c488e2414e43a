/* SPDX-License-Identifier: Apache-2.0 */
/* nvtx.c - NVTX of every kind, with the headers of a CUDA toolkit: compiled by nvtx.sh. */
#include <nvtx3/nvToolsExt.h>
#include <stddef.h>

int main(void)
{
	nvtxDomainHandle_t d = nvtxDomainCreateA("a library");
	nvtxStringHandle_t name = nvtxDomainRegisterStringA(d, "registered");
	nvtxEventAttributes_t e = { 0 };
	nvtxRangeId_t id;

	e.version = NVTX_VERSION;
	e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	e.messageType = NVTX_MESSAGE_TYPE_ASCII;
	e.message.ascii = "with attributes";
	nvtxRangePushA("outer");
	nvtxRangePushEx(&e);
	nvtxMarkA("a mark");
	nvtxRangePop();
	nvtxMarkEx(&e);
	nvtxRangePop();
	id = nvtxRangeStartA("anywhere");
	nvtxRangeEnd(id);
	id = nvtxRangeStartEx(&e);
	nvtxRangeEnd(id);
	e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	e.message.registered = name;
	nvtxDomainRangePushEx(d, &e);
	nvtxDomainMarkEx(d, &e);
	nvtxDomainRangePop(d);
	id = nvtxDomainRangeStartEx(d, &e);
	nvtxDomainRangeEnd(d, id);
	e.messageType = NVTX_MESSAGE_TYPE_UNICODE; /* is not read */
	e.message.unicode = L"wide";
	nvtxMarkEx(&e);
	nvtxMarkEx(NULL);
	nvtxRangePushA(NULL);
	nvtxRangePop();
	return 0;
}
