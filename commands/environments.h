/* SPDX-License-Identifier: Apache-2.0 */
/* environments.h - other versions of PyTorch and of packages, made by 'vramcast env'. */
#pragma once

#include "common/program.h"

enum { VC_ENV_PATH = 600 };

/* Where that PyTorch is kept: a version, or a wheel. */
int vc_env_folder(const char *version, char path[VC_ENV_PATH], struct vc_error *err);
/* 2.10, 2.10.1, or the file of a wheel */
bool vc_env_is_version(const char *version);

/* Make all of them that are not there, after saying what that costs: "torch=2.10", "NAME=VERSION"
 * of a package, which goes in front of those of `python`. path[i]: the interpreter of a PyTorch,
 * the folder of a package. */
int vc_env_need(const char *python, size_t n, char *const *what, char (*path)[VC_ENV_PATH],
		struct vc_error *err);

/* The releases of a package from one to the other, both included. */
int vc_env_releases(const char *name, const char *good, const char *bad,
		    char (*version)[VC_ENV_PATH], size_t most, size_t *n, struct vc_error *err);

/* The variables with which a program imports the package in that folder first. */
int vc_env_put_front(struct vc_texts *environment, const char *folder, struct vc_error *err);
