package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// temporalEnv names the variable that holds the address of a Temporal server.
const temporalEnv = "SLUICE_TEMPORAL"

// defaultEngine is the name of an engine that is given by its address alone.
const defaultEngine = "temporal"

// engineFlags say which engines there are, and how to reach them.
type engineFlags struct {
	named      []string // NAME=URL; a NAME alone is that of the server of the other flags
	server     temporal.Server
	namespace  string
	apiKeyFile string
	parallel   int
}

// engineScheme is that of the URL of a Temporal server.
const engineScheme = "temporal"

func (f *engineFlags) addTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.named, "engine", nil, "an engine, by the name that the setting «engine» of queues has for it: NAME=temporal://HOST:PORT/NAMESPACE?api-key-file=FILE; may be repeated. Parameters: tls, cert, key, ca, server-name, api-key-file, calls. A name alone is that of --temporal (default \"temporal\")")
	flags.StringVar(&f.server.Address, "temporal", os.Getenv(temporalEnv), "host:port of the Temporal server; default: $"+temporalEnv)
	flags.StringVar(&f.namespace, "temporal-namespace", "", "namespace of queues that name none (default \"default\")")
	flags.BoolVar(&f.server.TLS, "temporal-tls", false, "encrypt the connection")
	flags.StringVar(&f.server.Cert, "temporal-cert", "", "file of our certificate, as PEM")
	flags.StringVar(&f.server.Key, "temporal-key", "", "file of its private key, as PEM")
	flags.StringVar(&f.server.CA, "temporal-ca", "", "file of the certificates that the server's must come from, as PEM")
	flags.StringVar(&f.server.Name, "temporal-server-name", "", "what the server's certificate must be made out to")
	flags.StringVar(&f.apiKeyFile, "temporal-api-key-file", "", "file that holds an API key")
	flags.IntVar(&f.parallel, "temporal-calls", temporal.DefaultParallel, "how many calls are in flight at once")
}

// engineAt is how one engine is reached.
type engineAt struct {
	name       string
	server     temporal.Server
	namespace  string
	apiKeyFile string
	parallel   int
}

// open connects to the engines. Their servers need not be there yet. Optional: without an address there is no engine.
func (f *engineFlags) open(optional bool, logger *slog.Logger) (engines map[string]sluice.Engine, done func(), err error) {
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
		engine, err := at.dial(logger)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("engine %q: %w", at.name, err)
		}
		opened = append(opened, engine)
		if engines == nil {
			engines = make(map[string]sluice.Engine)
		}
		engines[at.name] = engine
	}
	return engines, done, nil
}

// all lists the engines that the flags name.
func (f *engineFlags) all(optional bool) ([]engineAt, error) {
	short := engineAt{name: defaultEngine, server: f.server, namespace: f.namespace, apiKeyFile: f.apiKeyFile, parallel: f.parallel}
	var all []engineAt
	names := make(map[string]bool)
	add := func(at engineAt) error {
		if err := sluice.CheckQueueName(at.name); err != nil || strings.Contains(at.name, "/") {
			return usagef("--engine: %q must be a name without a slash", at.name)
		}
		if names[at.name] {
			return usagef("--engine: %q is given twice", at.name)
		}
		names[at.name] = true
		all = append(all, at)
		return nil
	}
	for _, text := range f.named {
		name, at, is := strings.Cut(text, "=")
		if !is {
			short.name = name
			continue
		}
		engine, err := parseEngine(name, at)
		if err == nil {
			err = add(engine)
		}
		if err != nil {
			return nil, err
		}
	}
	if short.server.Address == "" && (optional || len(all) > 0) {
		return all, nil
	}
	short.server.Address = cmp.Or(short.server.Address, "127.0.0.1:7233")
	return all, add(short)
}

// parseEngine reads the URL of an engine. Secrets are in files, which it names.
func parseEngine(name, text string) (engineAt, error) {
	at := engineAt{name: name, parallel: temporal.DefaultParallel}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != engineScheme || u.Host == "" || u.Port() == "" || u.User != nil || strings.Contains(strings.Trim(u.Path, "/"), "/") {
		return at, usagef("--engine: the address of %q must be %s://HOST:PORT/NAMESPACE", name, engineScheme)
	}
	at.server.Address, at.namespace = u.Host, strings.Trim(u.Path, "/")
	parameters, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return at, usagef("--engine: the parameters of %q cannot be read", name)
	}
	for key, values := range parameters {
		if err := at.set(key, values[len(values)-1]); err != nil {
			return at, usagef("--engine: %q of engine %q: %w", key, name, err)
		}
	}
	return at, nil
}

func (at *engineAt) set(parameter, value string) (err error) {
	switch parameter {
	case "tls":
		at.server.TLS, err = strconv.ParseBool(value)
	case "cert":
		at.server.Cert = value
	case "key":
		at.server.Key = value
	case "ca":
		at.server.CA = value
	case "server-name":
		at.server.Name = value
	case "api-key-file":
		at.apiKeyFile = value
	case "calls":
		at.parallel, err = strconv.Atoi(value)
	default:
		err = errors.New("must be tls, cert, key, ca, server-name, api-key-file or calls")
	}
	return err
}

func (at engineAt) dial(logger *slog.Logger) (*temporal.Engine, error) {
	if at.apiKeyFile != "" {
		key, err := os.ReadFile(at.apiKeyFile)
		if err != nil {
			return nil, usagef("read the API key: %w", err)
		}
		at.server.APIKey = strings.TrimSpace(string(key))
	}
	return temporal.Dial(at.server, temporal.Options{Namespace: at.namespace, Parallel: at.parallel, Logger: logger})
}
