/* SPDX-License-Identifier: Apache-2.0 */
/* std.h - the headers of the C library that most files need. common/error.h brings them, so a file
 * that includes a header of ours names the others only. */
#pragma once

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
