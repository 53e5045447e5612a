package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/internal/event"
)

// defaultListen is where a server answers that is not told another address: on loopback (S-1).
const defaultListen = "127.0.0.1:7400"

// serveFlags are the options of «serve».
type serveFlags struct {
	listen      string
	monitor     string
	base        string
	grace       time.Duration
	noUpkeep    bool
	noDispatch  bool
	needsEngine bool
	engine      engineFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run as a server: upkeep, dispatchers for the queues that have an engine, health and metrics over HTTP",
		Long: `One process that does all but the work: it tends the store as «sluice upkeep» does and, with --temporal, hands
jobs to that engine as «sluice dispatch» does. Any number may run side by side; one leads upkeep, all dispatch.

Over HTTP it answers:

  /healthz   200 as long as the process lives
  /readyz    200 when it is ready, 503 with the reasons when it is not; as JSON with «Accept: application/json»
  /metrics   for Prometheus

It listens on loopback. --monitor adds an address for probes and Prometheus, which is all that is answered there. An
address that is not on loopback can be asked by whoever reaches it: there is no password. It shows how the process and
its store do, /metrics also the names of queues and tenants; never payloads or passwords.

A store that cannot be reached when the server starts is waited for, and /readyz says so; one that refuses the user or
lacks its tables ends the server. SIGTERM drains: /readyz says 503 at once, nothing more is claimed, what was claimed is
still handed over within --grace, and health and metrics are answered until that is done. Under systemd it tells how it
does (Type=notify, WatchdogSec).`,
		Example: "  sluice serve\n  sluice serve --temporal 127.0.0.1:7233 --monitor 0.0.0.0:7401\n  sluice serve --no-dispatch --grace 1m",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.serve(command.Context(), f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultListen, "host:port to answer at; /metrics only where it is on loopback")
	flags.StringVar(&f.monitor, "monitor", "", "another host:port, for health and metrics only")
	flags.StringVar(&f.base, "base", "", "the path below which --listen answers, such as /sluice behind a proxy")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "how long what was claimed may go on after the first interrupt")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave following, recovering and pruning to others")
	flags.BoolVar(&f.noDispatch, "no-dispatch", false, "hand nothing to the engine; upkeep still follows its runs")
	flags.BoolVar(&f.needsEngine, "ready-needs-engine", false, "be unready while the engine cannot be reached or a breaker is open")
	f.engine.addTo(flags)
	return command
}

// serve runs a server until it is interrupted or cannot go on.
func (a *app) serve(ctx context.Context, f serveFlags) error {
	at, err := parseAddress(a.db)
	if err != nil {
		return err
	}
	engines, done, err := f.engine.open(true, a.logger())
	if err != nil {
		return err
	}
	defer done()
	s := &server{app: a, flags: f, at: at, log: a.events(), engines: a.observeEngines(engines), failed: make(chan error, 2)}
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
	engines map[string]sluice.Engine

	readiness *api.Readiness
	doors     []door
	failed    chan error // of doors that cannot go on
	manager   managed
}

// door is an address at which the server answers.
type door struct {
	listener net.Listener
	site     *api.Site
}

// listen opens the doors. Who is told of the addresses is told of those that are, also where a port was left open.
func (s *server) listen() error {
	s.readiness = api.NewReadiness(notOpenYet(fmt.Errorf("it is being opened")))
	wanted := []struct {
		flag, at, base string
		metrics        bool
	}{{"--listen", s.flags.listen, s.flags.base, onLoopback(s.flags.listen)}}
	if s.flags.monitor != "" {
		wanted = append(wanted, struct {
			flag, at, base string
			metrics        bool
		}{"--monitor", s.flags.monitor, "", true})
	}
	for _, w := range wanted {
		options := api.Options{Base: w.base, Readiness: s.readiness, Logger: s.app.logger()}
		if onLoopback(w.at) {
			options.Hosts = api.LoopbackHosts()
		}
		if w.metrics {
			options.Metrics = s.app.metricsHandler()
		}
		site, err := api.New(options)
		if err != nil {
			return usagef("--base: %w", err)
		}
		listener, err := net.Listen("tcp", w.at)
		if err != nil {
			s.closeDoors()
			return codedError{fmt.Errorf("%s: %w", w.flag, err), exitFailed, "name an address of this machine that is free, as host:port, with " + w.flag}
		}
		s.doors = append(s.doors, door{listener, site})
		s.tellDoor(listener.Addr().String()+strings.TrimSuffix(w.base, "/"), w.metrics, onLoopback(w.at))
	}
	return nil
}

func (s *server) closeDoors() {
	for _, d := range s.doors {
		_ = d.listener.Close()
	}
}

// tellDoor says who can read what at an address.
func (s *server) tellDoor(address string, metrics, loopback bool) {
	answers, readable := "/healthz, /readyz", "how this process and its store do"
	if metrics {
		answers, readable = answers+", /metrics", readable+", what it did, and the names of queues and tenants"
	}
	s.log.Tell(event.ServerAnswers, "", "address", address, "answers", answers)
	if !loopback {
		s.log.Tell(event.ServerOpen, "", "address", address, "readable", readable)
	}
}

// metricsHandler answers /metrics; nil: there is nothing to show.
func (a *app) metricsHandler() http.Handler { return nil }

// onLoopback reports whether only this machine can reach an address. One without a host is that of every interface.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
