/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - what a process on the null GPU leaves for `vramcast dryrun`: a file that the process
 * keeps mapped while it runs, so that it is complete however the process ends. */
#pragma once

#include <stdint.h>

#define VC_REPORT_MAGIC 0x3574726f70657276ull
#define VC_REPORT_DEVICES 16
#define VC_REPORT_NAMES 128
#define VC_REPORT_NAME 120
#define VC_NULL_ROUTES "what is taken of equal scores" /* begins a name: vramcast_null_routes.py */
#define VC_NULL_BY_RULE "cuDNN convolution workspaces, by rule" /* likewise: cudnn_workspace.c */
#define VC_REPORT_WORKSPACES 1024 /* different sizes, of a megabyte and more */

struct vc_null_report {
	uint64_t magic;
	struct {
		uint64_t peak, refused, largest_refused; /* without the context */
		uint64_t blocks,
			rounding; /* at that peak: the driver's blocks, bytes lost to its pages */
		uint64_t used;   /* now */
		uint64_t together; /* the most that this process and others held of that card when
				    * this one took more, contexts included; 0: it was alone */
		uint64_t pool;   /* in use at most in an allocator that takes most of the card at
				  * its start (JAX's, TensorFlow's), by its own account */
	} device[VC_REPORT_DEVICES];
	uint64_t asked;  /* times the program asked how much memory there is, before anything was
			    refused */
	uint64_t polled; /* times it asked whether work on the device had finished */
	uint64_t steps;  /* of its optimizers */
	uint32_t convolutions; /* workspaces of convolutions were answered: 1: as the installed
				* cuDNN names them, 2: by rule, 3: both */
	int32_t pid, parent;
	uint64_t began_ns, ended_ns; /* of the machine's clock, which never goes back: when it
				      * first used a device; 0: it has not ended by itself */
	int16_t number[VC_REPORT_DEVICES]; /* the machine's of each device; -1: not known */
	int32_t ended;  /* 1: by exit or _exit; 0: by a signal, or it runs on */
	int32_t status; /* that it ended with */
	int32_t devices; /* how many the program wanted to see, where it asked for one that is
			  * not there; else 0 */
	uint32_t names;
	struct vc_null_unknown {
		uint64_t at_most;          /* bytes that may come on top; 0: not known */
		uint64_t beside;           /* ... of them outside of the framework's allocator */
		uint64_t fewer;            /* bytes that may not come at all */
		uint64_t least, counted,
			most; /* of a single request; most 0: there is no such interval */
		uint32_t ranks; /* 1: ranks that were not played would decide it */
		uint32_t bounded; /* 1: the bytes above are all that it can be off by */
		char name[VC_REPORT_NAME]; /* what was answered with a bound or a guess */
	} name[VC_REPORT_NAMES];
	uint32_t workspaces;
	uint64_t workspace[VC_REPORT_WORKSPACES]; /* that plans of cuDNN ran with */
};
