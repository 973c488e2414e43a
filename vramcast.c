/* SPDX-License-Identifier: Apache-2.0 */
/* vramcast.c - front door: global options, the command table, exit codes. */
#include <stdio.h>

int main(void)
{
	puts("vramcast " VC_VERSION);
	return 0;
}
