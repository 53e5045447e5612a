package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/scrub"
)

// logFlags say what to log, and how.
type logFlags struct {
	format  string
	level   string
	limit   int
	without []string
	silent  bool // nothing is logged
}

// levels are the values of --log-level.
var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// leaveAll makes --scrub-without remove nothing.
const leaveAll = "all"

func (f *logFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "log-format", "text", "log format on standard error: text, json")
	flags.StringVar(&f.level, "log-level", "", "least level to log: debug, info, warn, error (default: info, with -v debug, with -q warn)")
	flags.IntVar(&f.limit, "log-limit", event.DefaultLimit, "most lines per event and queue in 10 s; the rest is counted (-1: all)")
	flags.StringSliceVar(&f.without, "scrub-without", nil, "leave these in stored and logged errors: "+strings.Join(familyNames(), ", ")+", or all")
}

func familyNames() []string {
	var names []string
	for _, family := range scrub.Families() {
		names = append(names, string(family))
	}
	return names
}

// check refuses invalid flags.
func (f *logFlags) check() error {
	if f.format != "text" && f.format != "json" {
		return usagef("--log-format %q is neither text nor json", f.format)
	}
	if _, known := levels[f.level]; !known && f.level != "" {
		return usagef("--log-level %q must be one of debug, info, warn, error", f.level)
	}
	if f.limit == 0 {
		return usagef("--log-limit 0 would log nothing; -1 logs all")
	}
	for _, name := range f.without {
		if name != leaveAll && !slices.Contains(familyNames(), name) {
			return usagef("--scrub-without %q must be one of %s, %s", name, strings.Join(familyNames(), ", "), leaveAll)
		}
	}
	return nil
}

// clean returns the function that removes secrets from errors before they are stored or logged.
func (f *logFlags) clean() func(string) string {
	if slices.Contains(f.without, leaveAll) {
		return scrub.Nothing
	}
	var without []scrub.Family
	for _, name := range f.without {
		without = append(without, scrub.Family(name))
	}
	return scrub.New(scrub.Options{Without: without}).Text
}

// logger logs on standard error, as services do.
func (a *app) logger() *slog.Logger {
	level := slog.LevelInfo
	switch {
	case a.log.silent:
		level = slog.LevelError + 1
	case a.log.level != "":
		level = levels[a.log.level]
	case a.verbose:
		level = slog.LevelDebug
	case a.quiet:
		level = slog.LevelWarn
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.stderr, options)
	if a.log.format == "json" {
		options.ReplaceAttr = readable
		handler = slog.NewJSONHandler(a.stderr, options)
	}
	return scrubbed.Logger(slog.New(handler), a.log.clean())
}

// events is a log for what a command does outside its holders.
func (a *app) events() *event.Log { return event.NewLog(a.logger(), "", a.log.limit) }

// readable formats durations as 1.5s, as in text logs. JSON would show nanoseconds.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		attr.Value = slog.StringValue(fmt.Sprint(attr.Value.Duration()))
	}
	return attr
}
