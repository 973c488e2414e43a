/* SPDX-License-Identifier: Apache-2.0 */
/* test.h - what cmocka wants before its own header. */
#ifndef VC_TEST_H
#define VC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
