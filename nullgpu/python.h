/* SPDX-License-Identifier: Apache-2.0 */
/* python.h - finds the Python that a command line will run, and its PyTorch. */
#pragma once

#include "common/error.h"

/* The file of that program: itself, or the first in PATH. < 0: there is none. */
int vc_python_path(const char *name, char *out, size_t n);

/* Is that the name of a script of Python's? */
bool vc_python_is_script(const char *name);

/* Is there such a program to run? Else an error that says how to run a script. */
int vc_python_program(const char *program, struct vc_error *err);

/* The interpreter behind argv[0]: itself, that of a script such as torchrun; or, which gives 1, the
 * one in PATH, because the program may start it. */
int vc_python_find(const char *program, char *out, size_t n, struct vc_error *err);

/* The folder of the torch package that this Python would import; without one that of JAX's
 * plugins where there is one for CUDA 13 or 12, or TensorFlow's. beside (may be NULL): all folders
 * from which it would import installed packages, with ':' between them. */
int vc_python_package(const char *python, char *out, size_t n, char *beside, size_t n_beside,
		      struct vc_error *err);

/* The folders in which this Python looks for packages, with ':' between them. */
int vc_python_sites(const char *python, char *out, size_t n, struct vc_error *err);

/* The version of cuDNN that this PyTorch was built with (91900 for 9.19.0), from the package's own
 * list of requirements; 0 = not said. */
int vc_python_cudnn(const char *torch);
