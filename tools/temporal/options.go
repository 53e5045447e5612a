package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
)

// options are what the command line says.
type options struct {
	port         int
	uiPort       int
	store        string
	namespaces   []namespace
	dynamic      dynamicconfig.ConfigValueMap
	log          string
	endWithInput bool
}

// namespace is one to register before the server starts.
type namespace struct {
	name      string
	retention time.Duration
}

const (
	defaultNamespace = "default"
	defaultRetention = 72 * time.Hour
)

// presets are the values of Temporal's own development server where it differs from a production
// server: limits that tests do not hit, and search attributes that work at once, which each list reads anew.
var presets = []string{
	"frontend.namespaceRPS.visibility=100",
	"frontend.persistenceMaxQPS=100000",
	"history.persistenceMaxQPS=100000",
	"matching.persistenceMaxQPS=100000",
	"worker.persistenceMaxQPS=100000",
	"system.forceSearchAttributesCacheRefreshOnRead=true",
}

func parseOptions(args []string) (options, error) {
	opts := options{dynamic: dynamicconfig.ConfigValueMap{}}
	for _, preset := range presets {
		if err := opts.addDynamic(preset); err != nil {
			return opts, err
		}
	}
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	flags.IntVar(&opts.port, "port", 7233, "port of the frontend; 0: a free one")
	flags.IntVar(&opts.uiPort, "ui-port", 0, "port of the web UI; 0: no UI")
	flags.StringVar(&opts.store, "store", memory, "`memory`, a SQLite file, or a URL postgres://USER@HOST:PORT/NAME, where the databases NAME and NAME_visibility are made")
	flags.Func("namespace", "NAME or NAME=RETENTION to register where it is missing; may be repeated (default default=72h)", opts.addNamespace)
	flags.Func("dynamic", "KEY=VALUE of Temporal's dynamic configuration, the value in YAML or JSON; may be repeated", opts.addDynamic)
	flags.StringVar(&opts.log, "log", "error", "least level to log: debug, info, warn, error, fatal")
	flags.BoolVar(&opts.endWithInput, "end-with-input", false, "end when standard input ends, so that nothing outlives who started it")
	flags.SetOutput(io.Discard) // an error needs no list of flags around it
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
	}
	if err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(opts.namespaces) == 0 {
		opts.namespaces = []namespace{{defaultNamespace, defaultRetention}}
	}
	return opts, nil
}

func (o *options) addNamespace(text string) error {
	name, retention, given := strings.Cut(text, "=")
	added := namespace{name, defaultRetention}
	if name == "" {
		return fmt.Errorf("%q names no namespace", text)
	}
	if given {
		var err error
		if added.retention, err = time.ParseDuration(retention); err != nil {
			return fmt.Errorf("retention of %s: %w", name, err)
		}
		if added.retention <= 0 {
			return fmt.Errorf("retention of %s must be above zero", name)
		}
	}
	o.namespaces = append(o.namespaces, added)
	return nil
}

// addDynamic checks a value as Temporal itself does. A key that Temporal does not know is a mistake:
// the server would ignore it without a word.
func (o *options) addDynamic(text string) error {
	key, value, given := strings.Cut(text, "=")
	if !given {
		return fmt.Errorf("%q is not KEY=VALUE", text)
	}
	loader := dynamicconfig.LoadYamlFile(fmt.Appendf(nil, "%q: [{value: %s}]", key, value))
	for _, problem := range append(loader.Errors, loader.Warnings...) {
		return fmt.Errorf("%s: %w", key, problem)
	}
	for known, values := range loader.Map {
		o.dynamic[known] = values
	}
	return nil
}

// dynamicClient gives the server the values.
func (o *options) dynamicClient() dynamicconfig.Client {
	static := dynamicconfig.StaticClient{}
	for key, values := range o.dynamic {
		static[key] = values
	}
	return static
}
