/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_workspace.c - scratch memory of convolutions by rule, where no table has a row and no
 * installed cuDNN could be asked. */
#include "nullgpu/cudnn_workspace.h"
#include "nullgpu/usage.h"

static int64_t bytes_of(const struct vc_convolution *c, const int64_t *sizes)
{
	int64_t n = (int64_t)vc_cudnn_width(c->type);
	for (int i = 0; i < c->n; i++)
		n *= sizes[i];
	return n;
}

enum kind { FIRST, DENSE, POINT, NARROW, GROUPED }; /* the last two have groups */

/* Tensor cores want channels last, PyTorch's tensors are channels first by default: plans copy what
 * they read, or what they write, into the other layout. Which of the tensors are copied was found
 * by holding dry runs against measured peaks of nets on two classes of card (RTX 3060: 8.6, RTX
 * 4060: 8.9; fp32 with TF32, cuDNN 9.1; `make check-measured` says what that gives and on which
 * half of the runs it was chosen). Rows that only one class shows are why there is a class. */
struct copies {
	enum kind kind;
	enum vc_convolution_direction direction;
	int from, to; /* compute capabilities, 89 means 8.9 */
	bool x, y;    /* which are copied; the weights always are, then */
	int most;     /* MiB; a plan that needs more is not taken (0: no such limit seen) */
};

static const struct copies copies[] = {
	{ DENSE,   VC_CONVOLUTION_DATA,    0, 999, true, true, 0 },
	{ FIRST,   VC_CONVOLUTION_DATA,    0, 999, true, true, 0 },
	{ FIRST,   VC_CONVOLUTION_FORWARD, 80, 999, true, false, 0 },
	{ FIRST,   VC_CONVOLUTION_FILTER,  89, 999, true, true, 128 },
	{ POINT,   VC_CONVOLUTION_FORWARD, 80, 999, true, false, 0 },
	{ POINT,   VC_CONVOLUTION_DATA,    80, 88, true, false, 0 },
	{ POINT,   VC_CONVOLUTION_DATA,    89, 999, false, true, 0 },
	{ NARROW,  VC_CONVOLUTION_FORWARD, 80, 88, true, false, 0 },
	{ NARROW,  VC_CONVOLUTION_DATA,    89, 999, true, true, 0 },
	{ GROUPED, VC_CONVOLUTION_DATA,    80, 999, true, true, 0 },
};

static enum kind kind_of(const struct vc_convolution *c)
{
	int64_t kernel = 1;
	for (int i = 2; i < c->n; i++)
		kernel *= c->w[i];
	if (c->w[1] != c->x[1])
		return c->w[1] <= 8 ? NARROW : GROUPED; /* half of a tensor core's tile */
	if (kernel == 1)
		return POINT;
	return c->x[1] <= 4 ? FIRST : DENSE; /* the colours of an image */
}

/* The part of x that the convolution reads: strides may leave a border. */
static int64_t read_bytes_of_x(const struct vc_convolution *c)
{
	int64_t used[VC_CONVOLUTION_SIZES];
	memcpy(used, c->x, sizeof used);
	for (int i = 2; i < c->n; i++) {
		int64_t reach = (c->y[i] - 1) * c->stride[i - 2] +
			c->dilation[i - 2] * (c->w[i] - 1) + 1 - c->pad[i - 2];
		used[i] = reach < c->x[i] ? reach : c->x[i];
	}
	return bytes_of(c, used);
}

/* Channels last. From a record of allocations on an RTX card (ConvNeXt-Tiny, 300 images, fp32, in
 * the notebook beside the data of measured.tsv): 2 x 2 convolutions of 192 and 384 channels copy
 * all three tensors in every direction, one of 96 channels takes 640 bytes; depthwise ones copy x
 * for the gradient of the weights. Half precision was not in it. */
static int64_t channels_last(const struct vc_convolution *c)
{
	enum kind kind = kind_of(c);
	if (vc_null_card()->cc < 80 || vc_cudnn_width(c->type) != 4)
		return 0;
	if (kind == NARROW || kind == GROUPED)
		return c->direction == VC_CONVOLUTION_FILTER ? bytes_of(c, c->x) : 0;
	if (kind != DENSE || c->x[1] < 128)
		return 0;
	return (c->direction == VC_CONVOLUTION_DATA ? read_bytes_of_x(c) : bytes_of(c, c->x)) +
		bytes_of(c, c->y) + bytes_of(c, c->w);
}

/* The gradient of large weights over few pixels is summed from parts. Which sizes of workspace
 * bring a run's peak within 40 MiB of what was measured was looked up for 22 runs of MnasNet and
 * MobileNetV2 of 200 to 764 images: one part an image up to 326 images (11 of 13 runs; two want
 * two parts), one part for six images from 482 on (8 of 9). Between them the heuristics jump (377
 * images: a sixth, 400 and 403: one an image, 455: a half), and nothing is counted, which is off
 * by 4 % at most. Seen on the RTX 3060 only, and for one layer, of 320 to 1280 channels over 3 x
 * 3: narrower and wider ones show nothing of it. */
static int64_t in_parts(const struct vc_convolution *c)
{
	int64_t pixels = 1, w = bytes_of(c, c->w), images = c->x[0];
	for (int i = 2; i < c->n; i++)
		pixels *= c->y[i];
	if (vc_null_card()->cc != 86 || c->direction != VC_CONVOLUTION_FILTER ||
	    kind_of(c) != POINT || pixels > 9 || w < (1 << 20) || w > (2 << 20))
		return 0;
	return images <= 350 ? images * w : images > 480 ? images / 6 * w : 0;
}

/* What Winograd's transform F(4 x 4, 3 x 3) needs: 36 values for each tile of 4 x 4 pixels and
 * channel of input and output, and for each pair of channels. 0 where it cannot be used or is not
 * needed (8.0 and newer have tensor cores for fp32). */
static int64_t winograd(const struct vc_convolution *c)
{
	if (vc_null_card()->cc >= 80 || vc_cudnn_width(c->type) != 4 || c->n != 4 ||
	    c->w[1] != c->x[1])
		return 0;
	for (int i = 0; i < 2; i++)
		if (c->w[i + 2] != 3 || c->stride[i] != 1 || c->dilation[i] != 1)
			return 0;
	int64_t tiles = c->x[0] * ((c->y[2] + 3) / 4) * ((c->y[3] + 3) / 4);
	return 36 * 4 * (tiles * (c->x[1] + c->w[0]) + c->x[1] * c->w[0]);
}

/* On those cards the gradient of the input of a wide convolution goes that way: the published
 * peaks of FCN and PSPNet on dilated ResNets (V100) come out 3 to 8 % low with copies and within
 * 2 % with this. Those of U-Nets show that narrow layers at high resolution do not
 * (tests/nullgpu/measured/segment.py). */
static int64_t transformed(const struct vc_convolution *c)
{
	bool wide = c->x[1] >= 256 && c->w[0] >= 256;
	return wide && c->direction == VC_CONVOLUTION_DATA ? winograd(c) : 0;
}

static int64_t by_rule(const struct vc_convolution *c)
{
	int cc = vc_null_card()->cc;
	int64_t parts = in_parts(c) + transformed(c); /* never both */
	if (c->channels_last)
		return channels_last(c);
	if (parts || (kind_of(c) == FIRST && c->stride[0] >= c->w[2]))
		return parts; /* patches that do not overlap: 2.7 kB in the record above */
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
		const struct copies *r = &copies[i];
		if (r->kind != kind_of(c) || r->direction != c->direction || cc < r->from ||
		    cc > r->to)
			continue;
		int64_t bytes = (r->x ? bytes_of(c, c->x) : 0) + (r->y ? bytes_of(c, c->y) : 0) +
			bytes_of(c, c->w);
		return r->most && bytes > (int64_t)r->most << 20 ? 0 : bytes;
	}
	return 0;
}

/* The most that a plan was seen to take: copies of all three tensors, or their transforms; for the
 * gradient of the weights eight partial sums of it besides, or one an image (all above). */
static int64_t at_most(const struct vc_convolution *c)
{
	int64_t w = bytes_of(c, c->w), most = bytes_of(c, c->x) + bytes_of(c, c->y) + w,
		parts = 8 * w, tiles = winograd(c);
	if (tiles > most)
		most = tiles;
	if (c->direction != VC_CONVOLUTION_FILTER)
		return most;
	if (kind_of(c) == POINT && w >= 1 << 20 && w <= 2 << 20 && c->y[2] <= 3 &&
	    c->x[0] * w > parts)
		parts = c->x[0] * w;
	return most + parts;
}

/* The rule is named in the verdict, with why it was needed, the largest that was counted and what
 * that could be. Where it was held against measured peaks, how far those lay off is the margin, not
 * this interval: fp32 on 8.6 and 8.9 (measured.tsv) and on 7.0, half precision on 8.0
 * (popular.tsv). One name a process: the bounds of several would add up. */
static void doubt(const struct vc_convolution *c, int64_t counted)
{
	static char name[VC_REPORT_NAME];
	int cc = vc_null_card()->cc;
	bool measured = vc_cudnn_width(c->type) == 2 ? cc == 80 : cc == 70 || cc == 86 || cc == 89;
	int64_t most = at_most(c);
	const char *why = vc_cudnn_silent();
	if (!*name)
		snprintf(name, sizeof name, VC_NULL_BY_RULE "%s%.60s%s",
			 *why ? " (" : "", why, *why ? ")" : "");
	vc_null_range(name, &(struct vc_null_range){
		.counted = (uint64_t)counted, .most = (uint64_t)(most > counted ? most : counted),
		.measured = measured });
	vc_null_report()->convolutions |= 2;
}

void vc_cudnn_by_rule(const struct vc_convolution *c, struct vc_cudnn_plans *out)
{
	int64_t most = by_rule(c);
	*out = (struct vc_cudnn_plans){ .n = most ? 2 : 1, .at = { { .bytes = most } } };
	doubt(c, most);
}
