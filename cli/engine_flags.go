package cli

import (
	"cmp"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// temporalEnv names the variable that holds the address of a Temporal server.
const temporalEnv = "SLUICE_TEMPORAL"

// engineFlags say which engine there is, and how to reach it.
type engineFlags struct {
	name       string
	server     temporal.Server
	namespace  string
	apiKeyFile string
	parallel   int
}

func (f *engineFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "engine", "temporal", "the name that the setting «engine» of queues has for it")
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

// open connects to the engine. The server need not be there yet. Optional: without an address there is no engine.
func (f *engineFlags) open(optional bool, logger *slog.Logger) (engines map[string]sluice.Engine, done func(), err error) {
	engine, err := f.dial(optional, logger)
	if err != nil || engine == nil {
		return nil, func() {}, err
	}
	return map[string]sluice.Engine{f.name: engine}, func() { _ = engine.Close() }, nil
}

func (f *engineFlags) dial(optional bool, logger *slog.Logger) (*temporal.Engine, error) {
	if optional && f.server.Address == "" {
		return nil, nil
	}
	server := f.server
	server.Address = cmp.Or(server.Address, "127.0.0.1:7233")
	if f.apiKeyFile != "" {
		key, err := os.ReadFile(f.apiKeyFile)
		if err != nil {
			return nil, usagef("read the API key: %w", err)
		}
		server.APIKey = strings.TrimSpace(string(key))
	}
	return temporal.Dial(server, temporal.Options{Namespace: f.namespace, Parallel: f.parallel, Logger: logger})
}
