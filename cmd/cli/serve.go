package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
)

// defaultListen is the default address of a server, on loopback.
const defaultListen = "127.0.0.1:7400"

// serveFlags are the options of `serve`.
type serveFlags struct {
	listen      string
	monitor     string
	base        string
	environment string
	runPage     string
	tracePage   string
	views       []string
	grace       time.Duration
	noUpkeep    bool
	noDispatch  bool
	needsEngine bool
	engine      engineFlags
	hooks       webhookFlags
	api         apiFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run a server: upkeep, dispatchers, the HTTP API, the console, health and metrics",
		Long: `Does upkeep and alerts as "sluice upkeep" and, with --temporal or --engine, hands jobs to these
engines as "sluice dispatch". Any number may run; one leads upkeep, all dispatch.

Over HTTP it answers:

  /healthz   200 while the process lives
  /readyz    200 when ready, else 503 with reasons; JSON with "Accept: application/json"
  /metrics   for Prometheus
  /api/v1    the HTTP API, only at --listen
  /          the console for people, only at --listen
  /login     where people sign in, if callers need a token

The server listens on loopback, where nobody needs a token. Elsewhere --listen needs --tls-cert and
--tls-key, or a proxy that encrypts and --behind-proxy; then callers need a token or a session. A token
must exist before the start, unless people sign in by --oidc. Health and metrics need none: they show the state of process and store, and names of queues and tenants.

At its start it waits for an unreachable store, and /readyz says so. A refused user or missing
tables end it. SIGTERM drains: /readyz answers 503 at once, claims stop, and claimed jobs still
start within --grace. Health and metrics answer until then. Under systemd it reports its state
(Type=notify, WatchdogSec).`,
		Example: "  sluice serve\n  sluice serve --temporal 127.0.0.1:7233 --monitor 0.0.0.0:7401\n  sluice serve --listen 0.0.0.0:7400 --tls-cert cert.pem --tls-key key.pem\n  sluice serve --behind-proxy --oidc oidc.yaml --session-key-file session.key\n  sluice serve --engine eu=temporal://eu.example.com:7233/billing --engine us=temporal://us.example.com:7233/billing\n  sluice serve --no-dispatch --grace 1m",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.serve(command.Context(), f)
		},
	}
	flags := command.Flags()
	a.addVersionTo(flags)
	flags.StringVar(&f.listen, "listen", defaultListen, "address of the API; a port alone is on loopback, and only there /metrics is answered")
	flags.StringVar(&f.monitor, "monitor", "", "another address, for health and metrics only, such as 0.0.0.0:7401")
	flags.StringVar(&f.environment, "environment", "", "name of the installation, which the console shows; one that begins with prod is marked, and asks for reasons")
	flags.StringVar(&f.runPage, "run-page", "", "page of a run in the engine's own console, which the console links, such as 'https://temporal.example.com/namespaces/{namespace}/workflows/{ref}'")
	flags.StringVar(&f.tracePage, "trace-page", "", "page of a trace, which the console links, such as 'https://grafana.example.com/trace/{trace_id}'")
	flags.StringArrayVar(&f.views, "view", nil, "filter of jobs that the console offers to all, as NAME=FILTER, such as 'Stuck mails=queue:mail state:ready age:>5m'; repeatable")
	flags.StringVar(&f.base, "base", "", "path below which --listen answers, such as /sluice behind a proxy")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "time for claimed jobs after the first interrupt")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave following, recovering and pruning to others")
	flags.BoolVar(&f.noDispatch, "no-dispatch", false, "start no runs; upkeep still follows them")
	flags.BoolVar(&f.needsEngine, "ready-needs-engine", false, "be unready while the engine is unreachable or a breaker is open")
	f.engine.addTo(flags)
	f.hooks.addTo(flags)
	f.api.addTo(flags)
	return command
}

// serve runs a server until an interrupt or a fatal error.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	at, err := parseAddress(a.db)
	if err != nil {
		return err
	}
	if err := f.api.check(f.listen); err != nil {
		return err
	}
	people, err := f.api.signin.read()
	if err != nil {
		return err
	}
	engines, done, err := f.engine.open(true, a.logger())
	if err != nil {
		return err
	}
	defer done()
	receivers, err := f.hooks.orEnvironment().receivers()
	if err != nil {
		return err
	}
	s := &server{app: a, flags: f, at: at, log: a.events(), engines: a.observeEngines(engines), receivers: receivers, signin: people, failed: make(chan error, 2)}
	s.console.closed = consoleNotOpen
	defer s.log.Flush()
	if err := s.findManager(); err != nil {
		return err
	}
	defer s.leaveManager()
	if err := s.listen(); err != nil {
		return err
	}
	return s.run(ctx)
}

// server is a process that serves.
type server struct {
	app     *app
	flags   serveFlags
	at      address
	log     *event.Log
	engines map[string]engine.Engine
	// receivers are notified of alerts.
	receivers []alert.Receiver
	// more is done beside what the flags ask for.
	more []part
	// samples fills an empty store with sample data, when somebody asks the console for it. Nil: nobody can.
	samples func(context.Context) error

	readiness *api.Readiness
	doors     []door
	api       lateHandler[*httpapi.API]
	console   lateHandler[*console.Console]
	// signinDoor answers /login, if there is one.
	signinDoor lateHandler[*signin.Handler]
	login      bool // callers of the API need a token or a session
	signin     signin.Options
	failed     chan error // from doors that cannot go on
	manager    managed
}

// door is an address at which the server answers.
type door struct {
	listener net.Listener
	site     *api.Site
	options  api.ServeOptions
}

// listen opens the doors of --listen and --monitor, which answers health and metrics only.
func (s *server) listen() error {
	s.readiness = api.NewReadiness(notOpenYet(errors.New("it is being opened")))
	if err := s.openDoor("--listen", s.flags.listen, s.flags.base); err != nil || s.flags.monitor == "" {
		return err
	}
	if err := s.openDoor("--monitor", s.flags.monitor, ""); err != nil {
		s.closeDoors()
		return err
	}
	return nil
}

// openDoor listens at a flag's address. Metrics are answered on loopback and at --monitor.
func (s *server) openDoor(flag, at, base string) error {
	at, err := listenAddress(at)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	loopback := onLoopback(at)
	options := api.Options{Base: base, Readiness: s.readiness, Logger: s.app.logger()}
	metrics := loopback || flag == "--monitor"
	if metrics {
		options.Metrics = s.app.metrics.handler()
	}
	site, err := siteAt(at, options, s.flags.api.behindProxy && flag == "--listen")
	if err != nil {
		return usagef("--base: %w", err)
	}
	d := door{site: site, options: api.ServeOptions{Logger: s.app.logger()}}
	if flag == "--listen" {
		if d.options.TLS, err = s.flags.api.tlsConfig(s.log); err != nil {
			return err
		}
		d.options.Connections = maxAPIConnections
		s.login = s.flags.api.needsLogin(at)
		site.HandleAll(httpapi.Root+"/", &s.api)
		site.HandleAll("/", &s.console)
		if !metrics {
			site.Handle("/metrics", nil) // a scraper is told so, and not to sign in
		}
		if s.login {
			for _, at := range []string{"/login", "/login/", "/logout"} {
				site.HandleAll(at, &s.signinDoor)
			}
		}
	}
	if d.listener, err = net.Listen("tcp", at); err != nil {
		return codedError{fmt.Errorf("%s: %w", flag, err), exitUsage, "name an address of this machine that is free, as HOST:PORT, with " + flag}
	}
	s.doors = append(s.doors, d)
	s.tellDoor(flag, d.listener.Addr().String()+site.Base(), metrics, loopback)
	return nil
}

func (s *server) closeDoors() {
	for _, d := range s.doors {
		_ = d.listener.Close()
	}
}

// tellDoor logs who can read what at an address.
func (s *server) tellDoor(flag, address string, metrics, loopback bool) {
	answers, readable := "/healthz, /readyz", "how this process and its store do"
	if metrics {
		answers, readable = answers+", /metrics", readable+", what it did, and the names of queues and tenants"
	}
	if flag == "--listen" {
		login := "none: everybody who reaches the address is an admin"
		if s.login {
			login = strings.Join(s.ways(), ", ")
		}
		s.log.Emit(event.ServerAnswers, "", "address", address, "answers", answers+", "+httpapi.Root, "login", login)
	} else {
		s.log.Emit(event.ServerAnswers, "", "address", address, "answers", answers)
	}
	if !loopback {
		s.log.Emit(event.ServerOpen, "", "address", address, "readable", readable)
	}
}

// ways are how callers say who they are. Empty: nobody has to.
func (s *server) ways() (ways []string) {
	if !s.login {
		return nil
	}
	ways = []string{"tokens"}
	if s.flags.api.clientCA != "" {
		ways = append(ways, "certificates")
	}
	if s.signin.Provider != nil {
		ways = append(ways, s.signin.Provider.Issuer)
	}
	return ways
}

// onLoopback reports whether only this machine can reach an address. An address without a host means every interface.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
