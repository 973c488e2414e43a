/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plot.c - vramcast plot and report: run a trace and draw it. */
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/vec.h"
#include "commands/cmd_plot_lines.h"
#include "commands/asked_page.h"
#include "commands/live_words.h"
#include "commands/run_and_write.h"
#include "simulator/advise/advice_words.h"
#include "simulator/time/time.h"

struct config {
	struct vc_run_options run;
	struct vc_list output;
	const char *type, *theme, *width, *x, *title;
	const char *refresh; /* of a report: no option, see cmd_view.c */
	bool no_footer, no_background, no_advice, ask;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option plot_options[] = {
	{ 't', "type", VC_O_TEXT, AT(type), "NAME",
	  "the picture: timeline, flame, segments, compare, ... ('vramcast list sinks')", NULL },
	{ 'o', "output", VC_O_FILES, AT(output), "FILE",
	  "write FILE: .svg, .html, .dot, .txt; .png and .pdf through rsvg-convert", NULL },
	{ 0, "theme", VC_O_TEXT, AT(theme), "NAME", "auto, light, dark or print", NULL },
	{ 0, "width", VC_O_TEXT, AT(width), "PIXELS",
	  "width of the picture (below 900: a narrow layout)", NULL },
	{ 0, "axis", VC_O_TEXT, AT(x), "time|event", "what lies along the picture", NULL },
	{ 0, "x", VC_O_TEXT, AT(x), "time|event", NULL, NULL },
	{ 0, "title", VC_O_TEXT, AT(title), "TEXT", "instead of the picture's own title", NULL },
	{ 0, "no-footer", VC_O_FLAG, AT(no_footer), NULL, "leave out settings and version", NULL },
	{ 0, "no-background", VC_O_FLAG, AT(no_background), NULL, "leave out the card behind it",
	  NULL },
	VC_OPTION_END
};

enum { MAX_DEVICES = 64 };

struct plot {
	const struct config *cfg;
	const struct vc_console *con;
	struct vc_session **session;
	size_t sessions; /* one per trace and device that stand side by side */
	struct vc_run_options run, opt[MAX_DEVICES]; size_t opts; /* run: of all, but see below */
	struct vc_results results;
	const struct vc_sink_type *sink[16];
	bool helps; /* the report, and the picture of that, say what would help */
};

static int run_session(struct plot *p, struct vc_session *s, size_t traces, char **trace,
		       struct vc_error *err)
{
	const struct vc_asked asked = { &p->cfg->run, traces, trace };
	const struct vc_observer_type *watch[VC_WATCH_MOST] = { 0 };
	struct vc_plan *plan = NULL;
	struct vc_advice advice[VC_ADVICE_MOST];
	size_t plans = 0, first, n;
	int r = vc_session_plans(s, &plan, &plans, err);

	for (size_t k = 0; p->sink[k]; k++)
		vc_watch_for(watch, p->sink[k], s->rec->census.events);
	first = p->results.n;
	if (r == VC_OK)
		r = vc_run_plans(s, plan, plans, watch, &p->results, err);
	for (size_t i = 0; r == VC_OK && p->helps && i < plans; i++) {
		n = p->cfg->no_advice ? 0 :
		    vc_advise_aloud(s, &plan[i], &p->results.at[first + i], p->con, true,
				    advice);
		r = vc_advice_words(&plan[i], &asked, advice, n, &p->results.at[first + i],
				    err);
	}
	free(plan);
	return r;
}

static int params_text(const struct plot *p, const struct vc_sink_type *t, char *buf, size_t cap)
{
	const struct { const char *name, *value; } given[] = { { "theme", p->cfg->theme },
		{ "width", p->cfg->width }, { "x", p->cfg->x }, { "title", p->cfg->title },
		{ "refresh", p->cfg->refresh },
		{ "footer", p->cfg->no_footer ? "false" : NULL },
		{ "background", p->cfg->no_background ? "false" : NULL } };
	size_t used = 0;

	*buf = '\0';
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		for (const struct vc_param *q = t->params; given[i].value && q && q->name; q++)
			if (!strcmp(q->name, given[i].name) && used < cap)
				used += (size_t)snprintf(buf + used, cap - used, "%s%s=%s",
							 used ? "," : "", given[i].name,
							 given[i].value);
	return used < cap ? VC_OK : VC_EUSAGE;
}

static int write_file(const struct plot *p, const struct vc_sink_type *t, const char *path,
		      struct vc_error *err)
{
	char params[600];

	if (params_text(p, t, params, sizeof(params)))
		return vc_fail(err, VC_EUSAGE, "--title is too long");
	return vc_write_results(&p->results, t, params, path, err);
}

/* Without -o: the timeline as text, as wide as the window. */
static int show(const struct plot *p, const struct vc_console *con, struct vc_error *err)
{
	struct winsize w = { 0 };
	bool terminal = isatty(1) && !ioctl(1, TIOCGWINSZ, &w) && w.ws_col;
	const char *lang = getenv("LC_ALL"), *columns = getenv("COLUMNS");
	char params[120];

	lang = lang && *lang ? lang : getenv("LC_CTYPE");
	lang = lang && *lang ? lang : getenv("LANG");
	bool utf8 = !terminal || (lang && (strstr(lang, "UTF-8") || strstr(lang, "utf8")));
	unsigned width = terminal ? w.ws_col : columns ? (unsigned)strtoul(columns, NULL, 10) : 80;
	unsigned height = terminal && w.ws_row > 14 ? w.ws_row - 10u : 16;
	snprintf(params, sizeof(params), "width=%u,height=%u,color=%s,ascii=%s", width,
		 height > 30 ? 30 : height, con->color ? "true" : "false", utf8 ? "false" : "true");
	if (strcmp(p->sink[0]->name, "braille"))
		snprintf(params, sizeof(params), "width=%u", width);
	return vc_write_results(&p->results, p->sink[0], params, "-", err);
}

/* What a terminal shows of a picture, or NULL: the timeline, or the row NAME_text. */
static const struct vc_sink_type *as_text(const char *type)
{
	const struct vc_sink_type *t = vc_sink_by_name(type ? type : "timeline");
	char name[80];

	if (!strcmp(t->name, "timeline"))
		return vc_sink_by_name("braille");
	snprintf(name, sizeof(name), "%s_text", t->name);
	return strcmp(t->extension, "txt") ? vc_sink_by_name(name) : t;
}

static int choose_all(struct plot *p, size_t traces, int lines, struct vc_error *err)
{
	const struct config *c = p->cfg;
	size_t runs = lines == VC_LINES_PLANS ? VC_LAYOUTS_ONLY : lines ? VC_TOTALS_ONLY :
		      vc_runs_asked(&c->run) * traces;

	if (c->output.n > 15)
		return vc_fail(err, VC_EUSAGE, "at most 15 outputs at once");
	for (size_t i = 0; i < c->output.n; i++)
		if (!(p->sink[i] = vc_choose_sink(c->output.at[i], c->type, runs, err)))
			return err->status;
	if (!c->output.n && lines)
		return vc_fail(err, VC_EUSAGE,
			       lines == VC_LINES_PLANS ? "layouts are drawn with -o layouts.svg" :
			       "the results of a sweep are drawn with -o sweep.svg");
	if (!c->output.n && c->type && !vc_name_sink("-t", c->type, err))
		return err->status;
	if (!c->output.n)
		p->sink[0] = as_text(c->type);
	if (!c->output.n && !p->sink[0])
		return vc_fail(err, VC_EUSAGE, "-t %s needs -o FILE: it cannot be drawn as text",
			       c->type);
	return VC_OK;
}

/* Traces that stand side by side are not recordings of one family. */
static bool side_by_side(const struct plot *p)
{
	for (size_t i = 0; p->sink[i]; i++)
		if (p->sink[i]->side_by_side)
			return true;
	return false;
}

static int add_session(struct plot *p, const struct vc_run_options *opt, size_t n, char **paths,
		       struct vc_error *err)
{
	struct vc_session *s = calloc(1, sizeof(*s));

	if (!s || !vc_vec_one(p->session, p->sessions)) {
		free(s);
		return vc_nomem(err, "the traces");
	}
	p->session[p->sessions++] = s; /* also when opening fails: closed at the end */
	VC_TRY(vc_session_open(s, opt, n, paths, VC_SESSION_NO_REQUESTS_OK, err));
	if (p->helps)
		VC_TRY(vc_time_open(s, err));
	return run_session(p, s, n, paths, err);
}

/* Every device of the trace that the session just opened left out. */
static int add_devices(struct plot *p, char **path, struct vc_error *err)
{
	const struct vc_session *first = p->session[p->sessions - 1];

	for (size_t i = 0; i < first->rec->census.devices; i++) {
		const struct vc_device_census *d = &first->rec->census.device[i];
		struct vc_run_options *opt;
		if (!d->seen || !d->allocs || d->device == first->rec->device->device ||
		    p->opts == MAX_DEVICES)
			continue;
		opt = &p->opt[p->opts++];
		*opt = p->run;
		opt->device = d->device;
		VC_TRY(add_session(p, opt, 1, path, err));
	}
	return VC_OK;
}

static int run_all(struct plot *p, size_t argc, char **argv, struct vc_error *err)
{
	bool apart = side_by_side(p) && !p->cfg->run.set.n, ranks = false;

	for (size_t i = 0; p->sink[i]; i++) {
		p->helps = p->helps || p->sink[i]->advised;
		ranks = ranks || !strcmp(p->sink[i]->name, "ranks") ||
			!strcmp(p->sink[i]->name, "html");
	}
	if (argc && vc_lines_probe(argv[0])) {
		for (size_t i = 0; i < argc; i++)
			VC_TRY(vc_lines_read(argv[i], &p->results.at, &p->results.n, err));
		return VC_OK;
	}
	if (!apart)
		return add_session(p, &p->run, argc, argv, err);
	for (size_t i = 0; i < argc; i++) {
		VC_TRY(add_session(p, &p->run, 1, argv + i, err));
		if (ranks && p->cfg->run.device == VC_NOT_GIVEN)
			VC_TRY(add_devices(p, argv + i, err));
	}
	return VC_OK;
}

static int plot_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct plot p = { .cfg = config, .con = con,
			  .run = ((const struct config *)config)->run };
	int r = argc ? choose_all(&p, argc, vc_lines_probe(argv[0]), &con->err) :
		vc_fail(&con->err, VC_EUSAGE, "which trace? (vramcast plot TRACE -o timeline.svg)");

	if (r == VC_OK)
		r = vc_check_width(p.cfg->width, &con->err);
	vc_remark_cards(&p.run.gpu, con);
	if (r == VC_OK && p.cfg->type && vc_sink_instead(p.cfg->type) && !con->quiet)
		fprintf(stderr, "vramcast: -t %s is no more: this is -t %s, and 'vramcast report' "
				"says what lived when\n",
			p.cfg->type, vc_sink_instead(p.cfg->type));
	if (r == VC_OK)
		r = run_all(&p, argc, argv, &con->err);
	for (size_t i = 0; r == VC_OK && i < p.cfg->output.n; i++)
		r = write_file(&p, p.sink[i], p.cfg->output.at[i], &con->err);
	if (r == VC_OK && !p.cfg->output.n)
		r = show(&p, con, &con->err);
	if (r == VC_OK && p.cfg->output.n)
		vc_next(con, "view", p.cfg->output.at[0], "");
	vc_results_fini(&p.results);
	for (size_t i = 0; i < p.sessions; i++) {
		vc_session_close(p.session[i]);
		free(p.session[i]);
	}
	free(p.session);
	return r;
}

const struct vc_command vc_command_plot = {
	.name = "plot", .operands = "TRACE|RESULT...",
	.summary = "draw a trace: timeline, flame, segments, comparison, ...",
	.details =
		"Without -o a timeline of text fills the terminal. Exit codes: 0 drawn, 1 "
		"failed, 2 wrong usage.\n\n"
		"  vramcast plot train.vct -o timeline.svg\n"
		"  vramcast plot train.vct -g rtx4090 -t segments -o segments.svg\n"
		"  vramcast plot train.vct --conf '' --conf expandable_segments:True -o "
		"compare.svg\n  vramcast sweep train.vct --vary capacity=24G,40G,80G -o runs.jsonl "
		"&& vramcast plot runs.jsonl -o sweep.svg",
	.options = VC_OPTIONS(plot_options, vc_run_options),
	.config_size = sizeof(struct config), .run = plot_run,
};

/* ---- report: the same, as one HTML file ---- */

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n > m && !strcmp(text + n - m, end);
}

static int report_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct config c = *(const struct config *)config;

	if (!c.output.n)
		return vc_fail(&con->err, VC_EUSAGE,
			       "where to? (vramcast report TRACE -o report.html)");
	for (size_t i = 0; i < c.output.n; i++)
		if (!ends_in(c.output.at[i], ".html") && strcmp(c.output.at[i], "-"))
			return vc_fail(&con->err, VC_EUSAGE,
				       "-o %s: a report is written as .html", c.output.at[i]);
	if (c.ask && (c.output.n > 1 || c.theme || c.title || c.no_advice))
		return vc_fail(&con->err, VC_EUSAGE,
			       "--ask writes one file, and goes with neither --theme, --title nor "
			       "--no-advice: the page has these itself");
	if (c.ask && argc)
		return vc_asked_page(&c.run, argc, argv, c.output.at[0], &con->err);
	c.type = "html";
	return plot_run(&c, argc, argv, con);
}

int vc_report_live(size_t n, char **journal, const char *to, const char *refresh,
		   struct vc_console *con)
{
	struct config c = { .run = vc_run_options_none(), .output = { &to, 1 }, .type = "html",
			    .refresh = refresh, .no_advice = true };

	return plot_run(&c, n, journal, con);
}

static const struct vc_option report_options[] = {
	{ 'o', "output", VC_O_FILES, AT(output), "FILE", "write FILE (.html)", NULL },
	{ 0, "theme", VC_O_TEXT, AT(theme), "NAME", "auto, light, dark or print", NULL },
	{ 0, "title", VC_O_TEXT, AT(title), "TEXT", "title of the window", NULL },
	{ 0, "no-advice", VC_O_FLAG, AT(no_advice), NULL,
	  "do not look for changes that would help", NULL },
	{ 0, "ask", VC_O_FLAG, AT(ask), NULL,
	  "the page with the recording in it: it can be asked, in a browser", NULL },
	{ 0, "live", VC_O_FLAG, AT(ask), NULL, NULL, NULL },
	VC_OPTION_END
};

const struct vc_command vc_command_report = {
	.name = "report", .operands = "TRACE|RESULT...",
	.summary = "verdict, ledger, pictures and tables in one HTML file",
	.details =
		"The file needs no network. A script adds an instrument: ranges, the heap at any "
		"moment, blocks with their call stacks; the page says everything without it.\n"
		"Exit codes: 0 written, 1 failed, 2 wrong usage.\n\n"
		"  vramcast report train.vct -g rtx4090 -o report.html\n"
		"  vramcast report train.vct --conf '' --conf expandable_segments:True -o "
		"report.html",
	.options = VC_OPTIONS(report_options, vc_run_options),
	.config_size = sizeof(struct config), .run = report_run,
};
