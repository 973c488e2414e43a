/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.c - a program that asks the stand-in cuDNN for plans of a convolution, as frontends do.
 *
 * Run by device.sh. It drops each descriptor as soon as another one refers to it, which is what
 * PyTorch's frontend does: the plan must still know the shapes. Prints the workspace of each plan
 * of the three directions: "DIRECTION BYTES BYTES". With FALLBACK=1 it asks for the fallback list;
 * with CHILD=1 a forked child asks first, then both at once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *descriptor;

int cudnnBackendCreateDescriptor(int type, descriptor *out);
int cudnnBackendDestroyDescriptor(descriptor d);
int cudnnBackendSetAttribute(descriptor d, int name, int type, int64_t n, const void *value);
int cudnnBackendGetAttribute(descriptor d, int name, int type, int64_t wanted, int64_t *n,
			     void *out);
int cudnnBackendFinalize(descriptor d);

/* cudnnBackendAttributeType_t */
enum { DATA_TYPE = 1, INT64 = 3, DESCRIPTOR = 15 };

static descriptor make(int type)
{
	descriptor d = NULL;
	cudnnBackendCreateDescriptor(type, &d);
	return d;
}

/* The arguments of the program: channels of the input, of one group, the kernel; channels of the
 * output, side of the images, how many, the stride, 1 for channels last. */
enum { INPUT, GROUP, KERNEL, OUTPUT, SIDE, IMAGES, STRIDE, LAST, N_SHAPE };
static int64_t shape[N_SHAPE] = { 16, 16, 3, 24, 32, 8, 1, 0 };

static descriptor tensor(const int64_t *sizes)
{
	descriptor d = make(17);
	int fp32 = 0;
	int64_t strides[4] = { 0, 0, 0, 1 };
	for (int i = 2; i >= 0; i--)
		strides[i] = strides[i + 1] * sizes[i + 1];
	if (shape[LAST])
		strides[1] = 1;
	cudnnBackendSetAttribute(d, 901, DATA_TYPE, 1, &fp32);
	cudnnBackendSetAttribute(d, 902, INT64, 4, sizes);
	cudnnBackendSetAttribute(d, 903, INT64, 4, strides);
	cudnnBackendFinalize(d);
	return d;
}

/* Refers to `to` and lets go of it. */
static void hand_over(descriptor from, int name, descriptor to)
{
	cudnnBackendSetAttribute(from, name, DESCRIPTOR, 1, &to);
	cudnnBackendDestroyDescriptor(to);
}

/* `first`: the attribute of the convolution; those of w, x and y follow. */
static descriptor graph(int operation, int first)
{
	const int64_t *s = shape, out = s[SIDE] / s[STRIDE], one[] = { 1, 1 },
		x[] = { s[IMAGES], s[INPUT], s[SIDE], s[SIDE] },
		w[] = { s[OUTPUT], s[GROUP], s[KERNEL], s[KERNEL] },
		y[] = { s[IMAGES], s[OUTPUT], out, out }, stride[] = { s[STRIDE], s[STRIDE] },
		around = s[KERNEL] % 2 ? s[KERNEL] / 2 : 0, pad[] = { around, around };
	descriptor conv = make(1), op = make(operation), g = make(15);
	cudnnBackendSetAttribute(conv, 102, INT64, 2, one);
	cudnnBackendSetAttribute(conv, 103, INT64, 2, stride);
	cudnnBackendSetAttribute(conv, 105, INT64, 2, pad);
	hand_over(op, first, conv);
	hand_over(op, first + 1, tensor(w));
	hand_over(op, first + 2, tensor(x));
	hand_over(op, first + 3, tensor(y));
	hand_over(g, 801, op);
	return g;
}

static int64_t workspace(descriptor config)
{
	descriptor plan = make(5);
	int64_t bytes = -1, n;
	hand_over(plan, 401, config);
	cudnnBackendFinalize(plan);
	cudnnBackendGetAttribute(plan, 402, INT64, 1, &n, &bytes);
	cudnnBackendDestroyDescriptor(plan);
	return bytes;
}

static void ask(const char *name, int operation, int first)
{
	descriptor heuristic = make(4), config[8];
	int64_t n = 0;
	hand_over(heuristic, 201, graph(operation, first));
	if (getenv("FALLBACK")) {
		int mode = 2;
		cudnnBackendSetAttribute(heuristic, 200, 8, 1, &mode);
	}
	cudnnBackendFinalize(heuristic);
	cudnnBackendGetAttribute(heuristic, 202, DESCRIPTOR, 0, &n, NULL);
	n = n < 8 ? n : 8;
	for (int i = 0; i < n; i++)
		config[i] = make(3);
	cudnnBackendGetAttribute(heuristic, 202, DESCRIPTOR, n, &n, config);
	cudnnBackendDestroyDescriptor(heuristic);
	printf("%s", name);
	for (int i = 0; i < n; i++)
		printf(" %lld", (long long)workspace(config[i]));
	printf("\n");
}

/* As newer frontends do: they bring one configuration and take the answer for how many there are.
 */
static void ask_for_one(void)
{
	descriptor heuristic = make(4), config = make(3);
	int64_t n = 0;
	hand_over(heuristic, 201, graph(12, 708));
	cudnnBackendGetAttribute(heuristic, 202, DESCRIPTOR, 1, &n, &config);
	cudnnBackendDestroyDescriptor(heuristic);
	cudnnBackendDestroyDescriptor(config);
	printf("one %lld\n", (long long)n);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc && i <= N_SHAPE; i++)
		shape[i - 1] = strtoll(argv[i], NULL, 10);
	if (getenv("CHILD")) {
		ask("first", 10, 702);
		fflush(stdout);
		if (fork()) {
			wait(NULL);
		} else {
			shape[IMAGES] *= 2;
			ask("child", 10, 702);
			return 0;
		}
	}
	ask_for_one();
	ask("forward", 10, 702);
	ask("data", 12, 708);
	ask("filter", 11, 714);
	return 0;
}
