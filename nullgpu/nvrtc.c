/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.c - libnvrtc: every program compiles, to nothing. */
#include "nullgpu/null.h"

VC_API(int, nvrtcVersion, int *major, int *minor)
{
	*major = VC_CUDA_MAJOR;
	*minor = VC_CUDA_MAJOR >= 13 ? 0 : 8;
	return 0;
}

/* A program is compiled to eight zero bytes; the module loader does not look at them. */
#define CODE_SIZE 8

VC_API(int, nvrtcCreateProgram, void **program)
{
	*program = calloc(1, 8);
	return *program ? 0 : 1; /* NVRTC_ERROR_OUT_OF_MEMORY */
}

VC_API(int, nvrtcDestroyProgram, void **program)
{
	free(*program);
	*program = NULL;
	return 0;
}

VC_API_DOES(nvrtcGetPTXSize, (void *program, size_t *n), *n = CODE_SIZE)
VC_API_DOES(nvrtcGetCUBINSize, (void *program, size_t *n), *n = CODE_SIZE)
VC_API_DOES(nvrtcGetPTX, (void *program, char *out), memset(out, 0, CODE_SIZE))
VC_API_DOES(nvrtcGetCUBIN, (void *program, char *out), memset(out, 0, CODE_SIZE))
VC_API_DOES(nvrtcGetProgramLogSize, (void *program, size_t *n), *n = 1)
VC_API_DOES(nvrtcGetProgramLog, (void *program, char *out), *out = 0)
VC_API_DOES(nvrtcGetLoweredName, (void *program, const char *name, const char **out), *out = name)

VC_API(const char *, nvrtcGetErrorString, int e)
{
	return e ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
}

VC_API_DOES(nvrtcGetNumSupportedArchs, (int *n), *n = 1)
VC_API_DOES(nvrtcGetSupportedArchs, (int *out), *out = vc_null_card()->cc)
