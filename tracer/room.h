/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - the file of a journal, on the recorded process's side: it grows by what is asked for,
 * and says to the recorder when there is no room even for its beginning. */
#pragma once

#include "common/journal.h"

/* Where journals go; the folder must outlive the process. */
void vc_room_folder(const char *dir);
/* A new file, held by a lock until this process image is gone: how the reader knows that it is.
 * false: there is none, and the recorder was told why. */
bool vc_room_open(uint64_t now);
/* Maps so many further bytes of the file, a multiple of 4096. `spare`: only where the file system
 * has so many times as much. NULL: no room. */
void *vc_room_map(uint64_t bytes, unsigned spare, uint64_t *at);
/* Removes the file that was just opened, for the beginning of which there is no room. */
void vc_room_drop(void);
/* Nothing may be added any more (a forked child). */
void vc_room_forget(void);
/* Events of a process without a journal. */
void vc_room_lost(uint64_t events);
