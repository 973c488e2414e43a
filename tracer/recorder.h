/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - the writing side of the journal, inside the recorded process.
 *
 * Nothing here allocates from libc, prints or fails: what cannot be stored is counted. The first
 * record of a process creates its journal, the first record of a thread its ring. */
#pragma once

#include "common/journal.h"

#define VC_EXPORT __attribute__((visibility("default"))) /* the few names others may see */
#define VC_ENTRY __attribute__((visibility("default"), noinline))

/* Where journals go and what to record; called once by the constructor, before other threads. */
void vc_recorder_init(void);
/* The value of one word of the options ("device" in "device=cpu,stacks=py"); "" when absent. */
const char *vc_recorder_option(const char *key, char *buf, size_t n);

/* Is this process to be recorded at all? */
bool vc_recorder_wanted(void);

/* A record to fill, or NULL: not recording, or no room (counted). Everything but seq is garbage.
 * Every record that begins must be committed by the same thread before the next one begins. */
struct vc_record *vc_record_begin(void);
void vc_record_commit(struct vc_record *r);

/* Both at once: a copy of `what`, at the time it names or, when that is 0, now. */
bool vc_record_put(struct vc_record what);

/* Instead of commit: the record keeps its place in the order, and waits for vc_record_release, or
 * for the next record of this thread. */
void vc_record_hold(struct vc_record *r);
/* Publishes what this thread holds, with `text` in it; false: it holds none. */
bool vc_record_release(uint32_t text);

void vc_clock_init(void); /* by the constructor */
uint64_t vc_clock_ns(void);
uint64_t vc_clock_wall_ns(void); /* 0: unknown */
bool vc_clock_is_null(
	void); /* it is the device clock of the null GPU, whose CUPTI stamps with it too */

/* When the work of that correlation began on the null device, and for how long; false: unknown. */
bool vc_clock_null_span(uint32_t correlation, uint64_t *at, uint64_t *ns);
/* On the null GPU: what that kernel computes (common/kernel_work.h); else NULL. */
const char *vc_clock_null_work(uint32_t correlation);

/* Offset of a copy of `s` in the text area, at most 64 KiB of it; 0 when there is no room. Does not
 * look for duplicates: callers intern. */
uint32_t vc_recorder_text(const char *s, size_t n);
const char *vc_recorder_stored(uint32_t offset); /* what vc_recorder_text stored */
void vc_recorder_fact(const char *key, const char *value);
void vc_recorder_capability(enum vc_capability c, enum vc_how how);
enum vc_how vc_recorder_how(enum vc_capability c);
/* Creates the journal of this process if there is none yet; false: nothing is recorded. */
bool vc_recorder_open(void);
/* The process is about to end in an orderly way. Records still go in afterwards. */
void vc_recorder_end(void);
/* Is there a journal, and is it this process's? A child of vfork runs in its parent's memory. */
bool vc_recorder_mine(void);
/* Counts events that were lost before they could become records. */
void vc_recorder_lost(uint64_t n);

/* A program that was found running: where its journal goes. Until its heap is there, events only
 * count; false: it is being recorded already, or there is no room. */
bool vc_recorder_attach(const char *dir, const char *options);
uint64_t vc_recorder_passed(void); /* changes with each event that went by */
/* The heap as it was when vc_recorder_passed said so, then events; false: it has changed since. */
bool vc_recorder_live(const struct vc_record *heap, size_t n, uint64_t passed);
/* Nothing is recorded from now on, until somebody attaches again. */
void vc_recorder_detach(void);

/* Around fork: nothing half-done may be copied; the child starts with nothing. */
void vc_recorder_before_fork(void);
void vc_recorder_after_fork(bool child);
