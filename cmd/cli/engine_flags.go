package cli

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// temporalEnv is the variable with the address of a Temporal server.
const temporalEnv = "SLUICE_TEMPORAL"

// defaultEngine is the name of an engine given by its address alone.
const defaultEngine = "temporal"

// defaultTemporal is the server's address for commands that need one and have none.
const defaultTemporal = "127.0.0.1:7233"

// engineFlags name the engines and how to reach them.
type engineFlags struct {
	flags     *pflag.FlagSet
	named     []string // NAME=URL; a NAME alone is the engine of the other flags
	server    temporal.Server
	namespace string
	parallel  int
}

func (f *engineFlags) addTo(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringArrayVar(&f.named, "engine", nil, "engine by its name in queue settings: NAME=temporal://HOST:PORT/NAMESPACE?api-key-file=FILE; repeatable. Parameters: "+engineParameters+". A NAME alone names that of --temporal (default \"temporal\")")
	flags.StringVar(&f.server.Address, "temporal", os.Getenv(temporalEnv), "host:port of the Temporal server; default: $"+temporalEnv)
	flags.StringVar(&f.namespace, "temporal-namespace", "", "namespace of queues without one (default \"default\")")
	flags.BoolVar(&f.server.TLS, "temporal-tls", false, "encrypt the connection")
	flags.StringVar(&f.server.Cert, "temporal-cert", "", "our certificate file, PEM")
	flags.StringVar(&f.server.Key, "temporal-key", "", "our private key file, PEM")
	flags.StringVar(&f.server.CA, "temporal-ca", "", "file of the server's CA certificates, PEM")
	flags.StringVar(&f.server.Name, "temporal-server-name", "", "name in the server's certificate")
	flags.StringVar(&f.server.APIKeyFile, "temporal-api-key-file", "", "file with an API key")
	flags.IntVar(&f.parallel, "temporal-calls", temporal.DefaultParallel, "calls in flight at once")
}

// engineAt says how to reach one engine.
type engineAt struct {
	name      string
	server    temporal.Server
	namespace string
	parallel  int
}

// open connects to the engines; their servers may still be down. optional: without an address there is no engine.
func (f *engineFlags) open(optional bool, logger *slog.Logger) (engines map[string]engine.Engine, done func(), err error) {
	all, err := f.all(optional)
	if err != nil {
		return nil, nil, err
	}
	var opened []*temporal.Engine
	done = func() {
		for _, engine := range opened {
			_ = engine.Close()
		}
	}
	for _, at := range all {
		runner, err := at.dial(logger)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("engine %q: %w", at.name, err)
		}
		opened = append(opened, runner)
		if engines == nil {
			engines = make(map[string]engine.Engine)
		}
		engines[at.name] = runner
	}
	return engines, done, nil
}

// all lists the named engines, each name once.
func (f *engineFlags) all(optional bool) ([]engineAt, error) {
	var all []engineAt
	names := make(map[string]bool)
	alone := "" // name without an address
	for _, text := range f.named {
		engine, err := parseEngine(text)
		switch {
		case err != nil:
			return nil, err
		case names[engine.name] || engine.name == alone:
			return nil, usagef("--engine %s is given twice", engine.name)
		case engine.server.Address != "":
			all = append(all, engine)
			names[engine.name] = true
		case alone != "":
			return nil, usagef("--engine %s and --engine %s have no address; write one as %s", alone, engine.name, engineForm(engine.name))
		default:
			alone = engine.name
		}
	}
	if f.server.Address == "" && alone == "" && (optional || len(all) > 0) {
		return all, f.withoutServer()
	}
	short, err := f.short(alone, len(all) > 0 || optional)
	if err != nil {
		return nil, err
	}
	if names[short.name] {
		return nil, usagef("--engine %s is given twice: --temporal or $%s gives one of this name; add --engine OTHER to name that one", short.name, temporalEnv)
	}
	return append(all, short), nil
}

// short is the engine of --temporal and its sibling flags. needs: its address must be given.
func (f *engineFlags) short(name string, needs bool) (engineAt, error) {
	at := engineAt{name: name, server: f.server, namespace: f.namespace, parallel: f.parallel}
	if at.name == "" {
		at.name = defaultEngine
	}
	if at.server.Address == "" && needs {
		return at, usagef("--engine %s has no address; write %s, or add --temporal HOST:PORT", name, engineForm(name))
	}
	if at.server.Address == "" {
		at.server.Address = defaultTemporal
	}
	for _, flag := range f.besides() {
		if f.flags.Lookup(flag).Value.String() == "" { // such as an unset variable, which would be ignored silently
			return at, usagef("--%s is empty", flag)
		}
	}
	if at.parallel < 1 {
		return at, usagef("--temporal-calls %d must be at least 1", at.parallel)
	}
	return at, at.check()
}

// withoutServer refuses flags of --temporal without --temporal: they would have no effect.
func (f *engineFlags) withoutServer() error {
	given := f.besides()
	if len(given) == 0 {
		return nil
	}
	return usagef("--%s is for the engine of --temporal, which is not given; add --temporal HOST:PORT, or write it as a parameter of --engine", given[0])
}

// given is the first flag of engines on the command line. Empty: none.
func (f *engineFlags) given() (first string) {
	f.flags.Visit(func(flag *pflag.Flag) {
		if first == "" && (flag.Name == "engine" || strings.HasPrefix(flag.Name, "temporal")) {
			first = flag.Name
		}
	})
	return first
}

// besides lists the given flags that belong to --temporal.
func (f *engineFlags) besides() (given []string) {
	f.flags.Visit(func(flag *pflag.Flag) {
		if strings.HasPrefix(flag.Name, "temporal-") {
			given = append(given, flag.Name)
		}
	})
	return given
}

func (at engineAt) dial(logger *slog.Logger) (*temporal.Engine, error) {
	return temporal.Dial(at.server, temporal.Options{Namespace: at.namespace, Parallel: at.parallel, Logger: logger})
}
