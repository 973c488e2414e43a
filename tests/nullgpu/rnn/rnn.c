/* SPDX-License-Identifier: Apache-2.0 */
/* rnn.c TABLE [ALGORITHM] - asks the stand-in cuDNN for the temporary space of recurrent networks,
 * a line of the table each, and counts by which pass the answers are those of the card: within 512
 * bytes, and within 3 %. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *descriptor;

int cudnnCreateRNNDescriptor(descriptor *out);
int cudnnCreateRNNDataDescriptor(descriptor *out);
int cudnnSetRNNDescriptor_v8(descriptor r, int algorithm, int cell, int bias, int direction,
			     int mode, int type, int precision, int math, int input, int hidden,
			     int projection, int layers, void *dropout, unsigned flags);
int cudnnSetRNNDataDescriptor(descriptor x, int type, int layout, int steps, int batch, int vector,
			      const int *lengths, void *padding);
int cudnnGetRNNTempSpaceSizes(void *h, descriptor r, int training, descriptor x, size_t *workspace,
			      size_t *reserve);

enum { TRAINING, RESERVE, INFERENCE, KINDS };

static int near(size_t have, size_t want, double part)
{
	double off = have > want ? (double)(have - want) : (double)(want - have);
	return off < 512 || off <= part * (double)want;
}

int main(int argc, char **argv)
{
	static int lengths[4096];
	int cell, dirs, type, input, hidden, layers, packed, steps, batch, n = 0;
	int algorithm = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
	int same[KINDS] = { 0 }, close[KINDS] = { 0 };
	size_t want[KINDS], have[KINDS], none;
	char line[512];
	descriptor r, x;
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	if (!f || cudnnCreateRNNDescriptor(&r) || cudnnCreateRNNDataDescriptor(&x))
		return 1;
	while (fgets(line, sizeof line, f)) {
		if (*line == '#')
			continue;
		if (sscanf(line, "%d %d %d %d %d %d %d %d %d %zu %zu %zu", &cell, &dirs, &type,
			   &input, &hidden, &layers, &packed, &steps, &batch, &want[TRAINING],
			   &want[RESERVE], &want[INFERENCE]) != 12 || batch > 4096)
			return 1;
		for (int i = 0; i < batch; i++)
			lengths[i] = steps;
		cudnnSetRNNDescriptor_v8(r, algorithm, cell, 2, dirs - 1, 0, type, 0, 0, input,
					 hidden, hidden, layers, NULL, 0);
		cudnnSetRNNDataDescriptor(x, type, packed, steps, batch, input, lengths, NULL);
		cudnnGetRNNTempSpaceSizes(NULL, r, 1, x, &have[TRAINING], &have[RESERVE]);
		cudnnGetRNNTempSpaceSizes(NULL, r, 0, x, &have[INFERENCE], &none);
		for (int k = 0; k < KINDS; k++) {
			same[k] += near(have[k], want[k], 0);
			close[k] += near(have[k], want[k], 0.03);
		}
		n++;
	}
	fclose(f);
	printf("%d training %d %d reserve %d %d inference %d %d\n", n, same[TRAINING],
	       close[TRAINING], same[RESERVE], close[RESERVE], same[INFERENCE],
	       close[INFERENCE]);
	return 0;
}
