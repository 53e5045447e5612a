package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/internal/event"
)

// defaultListen is where a server answers that is not told another address: on loopback.
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
	hooks       webhookFlags
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run as a server: upkeep, dispatchers for the queues that have an engine, health and metrics over HTTP",
		Long: `One process that does all but the work: it tends the store and looks at alerts as «sluice upkeep» does and, with
--temporal, hands jobs to that engine as «sluice dispatch» does. Any number may run side by side; one leads upkeep, all dispatch.

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
		Example: "  sluice serve\n  sluice serve --temporal 127.0.0.1:7233 --monitor 0.0.0.0:7401\n  sluice serve --engine eu=temporal://eu.example.com:7233/billing --engine us=temporal://us.example.com:7233/billing\n  sluice serve --no-dispatch --grace 1m",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.serve(command.Context(), f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultListen, "where to answer; a port alone is on loopback, and only there /metrics is answered")
	flags.StringVar(&f.monitor, "monitor", "", "another address, which answers health and metrics only, such as 0.0.0.0:7401")
	flags.StringVar(&f.base, "base", "", "the path below which --listen answers, such as /sluice behind a proxy")
	flags.Var(newDuration(&f.grace, 30*time.Second), "grace", "how long what was claimed may go on after the first interrupt")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave following, recovering and pruning to others")
	flags.BoolVar(&f.noDispatch, "no-dispatch", false, "hand nothing to the engine; upkeep still follows its runs")
	flags.BoolVar(&f.needsEngine, "ready-needs-engine", false, "be unready while the engine cannot be reached or a breaker is open")
	f.engine.addTo(flags)
	f.hooks.addTo(flags)
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
	receivers, err := f.hooks.orEnvironment().receivers()
	if err != nil {
		return err
	}
	s := &server{app: a, flags: f, at: at, log: a.events(), engines: a.observeEngines(engines), receivers: receivers, failed: make(chan error, 2)}
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
	// receivers are told of alerts.
	receivers []alert.Receiver

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

// listen opens the doors: that of --listen, and that of --monitor, which knows nothing but health and metrics.
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

// openDoor listens where a flag says. Metrics are answered on loopback, and to who monitors.
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
	site, err := siteAt(at, options)
	if err != nil {
		return usagef("--base: %w", err)
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return codedError{fmt.Errorf("%s: %w", flag, err), exitUsage, "name an address of this machine that is free, as HOST:PORT, with " + flag}
	}
	s.doors = append(s.doors, door{listener, site})
	s.tellDoor(listener.Addr().String()+site.Base(), metrics, loopback)
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

// onLoopback reports whether only this machine can reach an address. One without a host is that of every interface.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
