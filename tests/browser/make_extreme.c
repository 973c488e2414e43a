/* SPDX-License-Identifier: Apache-2.0 */
/* make_extreme.c - make_extreme NAME FILE: writes one recording of extremes.h. */
#include "tests/support/extremes.h"

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(extremes) / sizeof(*extremes); i++)
		if (!strcmp(extremes[i].name, argv[1])) {
			printf("%llu events\n",
			       (unsigned long long)extreme_write(&extremes[i], argv[2]));
			return 0;
		}
	fprintf(stderr, "usage: make_extreme NAME FILE; there is no such name\n");
	return 2;
}
