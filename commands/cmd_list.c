/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_list.c - vramcast list, help and completions: everything that is plugged in, from the
 * tables. */

#include "common/opt.h"
#include "common/param.h"
#include "simulator/models/torch_rules.h"
#include "simulator/replay/cards.h"
#include "simulator/replay/model.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/transform.h"
#include "visualize/sink.h"

static void row(struct vc_output *o, const char *name, const char *summary)
{
	vc_output_printf(o, "  %-16s %s\n", name, summary);
}

/* The sockets; each prints its rows, and explains one of them by name. */
struct plug { const char *name, *summary; const struct vc_param *params; };

static struct plug source_plug(size_t i)
{
	const struct vc_source_type *t = vc_sources[i];

	return t ? (struct plug){ t->name, t->summary, t->params } : (struct plug){ 0 };
}

static struct plug transform_plug(size_t i)
{
	const struct vc_source_type *t = vc_transforms[i];

	return t ? (struct plug){ t->name, t->summary, t->params } : (struct plug){ 0 };
}

static struct plug model_plug(size_t i)
{
	const struct vc_model_type *t = vc_models[i];

	return t ? (struct plug){ t->name, t->summary, t->params } : (struct plug){ 0 };
}

static struct plug observer_plug(size_t i)
{
	const struct vc_observer_type *t = vc_observers[i];

	return t ? (struct plug){ t->name, t->summary, NULL } : (struct plug){ 0 };
}

static struct plug sink_plug(size_t i)
{
	const struct vc_sink_type *t = vc_sinks[i];

	return t ? (struct plug){ t->name, t->summary, t->params } : (struct plug){ 0 };
}

static const struct { const char *name; struct plug (*at)(size_t); } sockets[] = {
	{ "sources", source_plug }, { "transforms", transform_plug }, { "models", model_plug },
	{ "observers", observer_plug }, { "sinks", sink_plug },
};
#define SOCKETS (sizeof(sockets) / sizeof(*sockets))

/* Two lists that belong to the torch model; each is printed where it is asked for. */
static bool list_torch(struct vc_output *o, const char *what)
{
	const struct vc_model_type *m = vc_model_by_name("torch");
	const char *name, *usual;
	char text[96];

	if (!strcmp(what, "versions"))
		for (size_t i = 0; m->versions[i]; i++)
			row(o, m->versions[i], "PyTorch's allocator of that release");
	if (!strcmp(what, "settings"))
		for (size_t i = 0, v; torch_conf_option(i, &name, &usual); i++) {
			for (v = 0; !m->knows_option(name, m->versions[v]) && m->versions[v + 1];)
				v++;
			if (!usual)
				continue;
			snprintf(text, sizeof(text), "%s:%s", name, usual);
			vc_output_printf(o, "  %-34s PyTorch %s on\n", text, m->versions[v]);
		}
	return !strcmp(what, "versions") || !strcmp(what, "settings");
}

static int finish(struct vc_output *out, struct vc_error *err)
{
	int r = vc_output_commit(out, err);

	vc_output_close(out);
	return r;
}

static int list_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct vc_output *out = vc_output_open("-", &con->err);
	const char *names[SOCKETS], *like;
	size_t near;
	bool any = false;

	if (!out)
		return con->err.status;
	any = argc && list_torch(out, argv[0]);
	for (size_t k = 0; k < SOCKETS; k++) {
		if (argc && strcmp(argv[0], sockets[k].name))
			continue;
		any = true;
		if (!argc)
			vc_output_printf(out, "%s\n", sockets[k].name);
		for (size_t i = 0; sockets[k].at(i).name; i++)
			row(out, sockets[k].at(i).name, sockets[k].at(i).summary);
	}
	if (!any) {
		vc_output_close(out);
		for (near = 0; near < SOCKETS; near++)
			names[near] = sockets[near].name;
		like = vc_nearest(argv[0], names, SOCKETS);
		return vc_fail(&con->err, VC_EUSAGE, "there is no list '%s'%s%s%s (sources, "
			       "transforms, models, observers, sinks, versions, settings)", argv[0],
			       like ? ", did you mean " : "", like ? like : "", like ? "?" : "");
	}
	return finish(out, &con->err);
}

const struct vc_command vc_command_list = {
	.name = "list", .operands = "[sources|transforms|models|observers|sinks|versions|settings]",
	.summary = "what is plugged in", .run = list_run,
};

static void explain_plug(struct vc_output *out, const char *socket, struct plug p)
{
	char left[64], right[400];

	vc_output_printf(out, "%s (one of the %s)\n\n%s\n", p.name, socket, p.summary);
	if (!p.params || !p.params->name)
		return;
	vc_output_text(out, "\nParameters:\n");
	for (const struct vc_param *a = p.params; a->name; a++) {
		snprintf(left, sizeof(left), "  %s", a->name);
		snprintf(right, sizeof(right), a->type == VC_P_ALIAS ? "%s" : "%s [%s]%s%s%s",
			 a->help, a->fallback, a->choices ? " (" : "",
			 a->choices ? a->choices : "", a->choices ? ")" : "");
		vc_opt_row(out, left, 23, right);
	}
}

/* "2.1  expandable segments": what each version of PyTorch changed, and on other devices. */
static void explain_versions(struct vc_output *out)
{
	const struct torch_device_change *d;
	char left[32];

	vc_output_text(out, "\nWhat changed when:\n");
	for (const struct torch_rule_change *c = torch_rule_changes; c->what; c++) {
		snprintf(left, sizeof(left), "  %d.%d", c->major, c->minor);
		vc_opt_row(out, left, 12, c->what);
	}
	for (d = torch_device_changes; d->is.what; d++) {
		snprintf(left, sizeof(left), "  %s %d.%d", d->device == TORCH_HIP ? "ROCm" :
			 torch_device_name[d->device], d->is.major, d->is.minor);
		vc_opt_row(out, left, 12, d->is.what);
	}
}

static const char *nearest_topic(const struct vc_command *const *commands, const char *word)
{
	const char *names[256];
	size_t n = 0;

	for (size_t i = 0; n < 256 && commands[i]; i++)
		names[n++] = commands[i]->name;
	for (size_t k = 0; k < SOCKETS; k++)
		for (size_t i = 0; n < 256 && sockets[k].at(i).name; i++)
			names[n++] = sockets[k].at(i).name;
	return vc_nearest(word, names, n);
}

static int help_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct vc_command *c = argc ? vc_command_find(con, argv[0]) : NULL;
	struct vc_output *out = vc_output_open("-", &con->err);
	const char *near;
	bool any = c != NULL;

	if (!out)
		return con->err.status;
	if (c)
		vc_opt_help(c, out);
	for (size_t k = 0; argc && k < SOCKETS; k++) {
		for (size_t i = 0; sockets[k].at(i).name; i++) {
			if (strcmp(sockets[k].at(i).name, argv[0]))
				continue;
			vc_output_text(out, any ? "\n" : "");
			explain_plug(out, sockets[k].name, sockets[k].at(i));
			if (!strcmp(argv[0], "torch") && !strcmp(sockets[k].name, "models"))
				explain_versions(out);
			any = true;
		}
	}
	if (!any) {
		vc_output_close(out);
		near = argc ? nearest_topic(con->commands, argv[0]) : NULL;
		return vc_fail(&con->err, VC_EUSAGE,
			       "nothing is called '%s'%s%s%s ('vramcast help' lists the commands, "
			       "'vramcast list' the rest)",
			       argc ? argv[0] : "", near ? ", did you mean " : "",
			       near ? near : "", near ? "?" : "");
	}
	return finish(out, &con->err);
}

const struct vc_command vc_command_help = {
	.name = "help", .operands = "[NAME]",
	.summary = "explain a command, source, transform, model or sink", .run = help_run,
};

/* ---- completions ---- */

static void words_of(struct vc_output *out, const struct vc_command *c, const char *lead)
{
	for (size_t t = 0; c->options && c->options[t]; t++)
		for (const struct vc_option *o = c->options[t]; o->name; o++)
			if (o->help)
				vc_output_printf(out, "%s--%s", lead, o->name);
}

static const char *card_name(size_t i)
{
	return i < vc_cards_n ? vc_cards[i].name : NULL;
}

static const char *transform_name(size_t i)
{
	return transform_plug(i).name;
}

static const char *model_name(size_t i)
{
	return model_plug(i).name;
}

static const char *sink_name(size_t i)
{
	return sink_plug(i).name;
}

static const char *torch_version(size_t i)
{
	return vc_model_by_name("torch")->versions[i];
}

static const char *theme_name(size_t i)
{
	static const char *const name[] = { "auto", "light", "dark", "print", NULL };

	return name[i];
}

/* Options whose values are names of a table. */
static const struct { const char *option; const char *(*at)(size_t i); } valued[] = {
	{ "gpu", card_name },   { "transform", transform_name }, { "model", model_name },
	{ "type", sink_name },  { "to", sink_name },             { "torch", torch_version },
	{ "theme", theme_name },
};

/* The words an option can be followed by, each behind `lead`; of "warm|cold" these two. */
static void values_of(struct vc_output *out, const struct vc_option *o, const char *lead)
{
	const char *arg = o->arg ? o->arg : "";
	bool any = false;

	for (size_t k = 0; k < sizeof(valued) / sizeof(*valued); k++)
		for (size_t i = 0; !strcmp(valued[k].option, o->name) && valued[k].at(i); i++) {
			vc_output_printf(out, "%s%s", lead, valued[k].at(i));
			any = true;
		}
	for (; !any && strchr(o->arg ? o->arg : "", '|') && *arg; arg += *arg == '|') {
		size_t n = strcspn(arg, "|");

		if (strspn(arg, "abcdefghijklmnopqrstuvwxyz") >= n)
			vc_output_printf(out, "%s%.*s", lead, (int)n, arg);
		arg += n;
	}
}

/* In a shell's case: what stands behind an option that takes a name. */
static void bash_values(struct vc_output *out, const struct vc_command *c)
{
	for (size_t t = 0; c->options && c->options[t]; t++)
		for (const struct vc_option *o = c->options[t]; o->name; o++) {
			if (!o->arg || !o->help)
				continue;
			vc_output_printf(out, "\t%s:--%s", c->name, o->name);
			if (o->letter)
				vc_output_printf(out, "|%s:-%c", c->name, o->letter);
			vc_output_text(out, ") words='");
			values_of(out, o, " ");
			vc_output_text(out, "' ;;\n");
		}
}

static void bash_script(const struct vc_command *const *commands, struct vc_output *out)
{
	vc_output_text(out, "_vramcast_words() {\n"
		       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		       "\tlocal words= cmd=${COMP_WORDS[1]}\n"
		       "\tif [ \"$COMP_CWORD\" = 1 ]; then words='");
	for (size_t i = 0; commands[i]; i++)
		vc_output_printf(out, "%s%s", i ? " " : "", commands[i]->name);
	vc_output_text(out, "'\n\telse case $cmd:$prev in\n");
	for (size_t i = 0; commands[i]; i++)
		bash_values(out, commands[i]);
	for (size_t i = 0; commands[i]; i++) {
		vc_output_printf(out, "\t%s:*) words='", commands[i]->name);
		words_of(out, commands[i], " ");
		vc_output_text(out, "' ;;\n");
	}
	vc_output_text(out, "\tesac; fi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		       "\t[ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n"
		       "complete -o filenames -F _vramcast_words vramcast\n");
}

/* Sourced it registers itself; from a folder of $fpath it is the function of the first call. */
static void zsh_script(const struct vc_command *const *commands, struct vc_output *out)
{
	vc_output_text(out, "#compdef vramcast\nautoload -U +X bashcompinit && bashcompinit\n");
	bash_script(commands, out);
	vc_output_text(out, "[ \"${funcstack[1]}\" != _vramcast ] || "
		       "_bash_complete -o filenames -F _vramcast_words\n");
}

static void fish_option(struct vc_output *out, const struct vc_command *c,
			const struct vc_option *o)
{
	vc_output_printf(out, "complete -c vramcast -n '__fish_seen_subcommand_from %s' -l %s",
			 c->name, o->name);
	if (o->letter)
		vc_output_printf(out, " -s %c", o->letter);
	if (o->arg) {
		vc_output_text(out, " -r -a '");
		values_of(out, o, " ");
		vc_output_text(out, "'");
	}
	vc_output_text(out, "\n");
}

static void fish_script(const struct vc_command *const *commands, struct vc_output *out)
{
	char words[200];

	for (size_t i = 0; commands[i]; i++) {
		const struct vc_command *c = commands[i];

		vc_output_printf(out, "complete -c vramcast -n __fish_use_subcommand -a %s -d %s\n",
				 c->name, vc_opt_word(c->summary, words, sizeof(words)));
		for (size_t t = 0; c->options && c->options[t]; t++)
			for (const struct vc_option *o = c->options[t]; o->name; o++)
				if (o->help)
					fish_option(out, c, o);
	}
}

static int completions_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	static const struct {
		const char *name;
		void (*fn)(const struct vc_command *const *, struct vc_output *);
	} shells[] = {
		{ "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script },
	};

	for (size_t i = 0; argc && i < 3; i++) {
		struct vc_output *out;

		if (strcmp(argv[0], shells[i].name))
			continue;
		out = vc_output_open("-", &con->err);
		if (!out)
			return con->err.status;
		shells[i].fn(con->commands, out);
		return finish(out, &con->err);
	}
	return vc_fail(&con->err, VC_EUSAGE, "which shell: bash, zsh or fish");
}

const struct vc_command vc_command_completions = {
	.name = "completions", .operands = "bash|zsh|fish",
	.summary = "shell completion, to be sourced", .run = completions_run,
};
