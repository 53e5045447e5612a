// Command workflows is a small workflow service on Sluice and Temporal: workspaces of three plans, workflow definitions
// with versions, and a REST interface to have them executed. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/apps/workflows/api"
	"github.com/sluice-queue/sluice/apps/workflows/demo"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/apps/workflows/service"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/cmd/monitor/otlp"
)

const usage = `usage:
  workflows serve [flags]   the REST interface, the dispatcher, upkeep, and the interpreter's worker
  workflows demo [flags]    sixty workspaces, one of them noisy; shows shares, waits and caps, and checks them`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "workflows:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "serve":
		return serve(ctx, args[1:])
	case "demo":
		return runDemo(ctx, args[1:])
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}

// runDemo runs the demo.
func runDemo(ctx context.Context, args []string) error {
	var o demo.Options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.Workspaces, "workspaces", 60, "how many workspaces there are: of ten, one is ENTERPRISE, three are PRO and six are FREE; the first is noisy")
	flags.IntVar(&o.Noisy, "noisy", 1000, "how many executions the noisy workspace has")
	flags.IntVar(&o.Rounds, "rounds", 5, "how often each of the others has one more executed, after its first burst")
	flags.DurationVar(&o.Every, "every", 5*time.Second, "the time between two rounds")
	flags.StringVar(&o.Database, "db", "", "an empty PostgreSQL database, or a new SQLite file (default: a file that is deleted afterwards)")
	flags.StringVar(&o.Temporal, "temporal", "", "address of a Temporal server (default: one that is built from tools/temporal, and ends with the demo)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return demo.Run(ctx, o, os.Stdout)
}

// serve runs the whole service in this process until ctx ends.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	address := flags.String("db", "workflows.db", "SQLite file, or the URL of a PostgreSQL database")
	listen := flags.String("listen", "127.0.0.1:8086", "loopback address of the REST interface")
	server := flags.String("temporal", "127.0.0.1:7233", "address of the Temporal server")
	hosts := flags.String("allow-hosts", "", "the only host:port pairs that HTTP nodes may call, with commas between them")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logger := slog.Default()
	database, err := records.Open(ctx, *address)
	if err != nil {
		return err
	}
	defer func() { _ = database.Close() }()
	traces, err := otlp.New(ctx)
	if err != nil {
		return err
	}
	watched, err := database.Monitor(monitor.Options{Logger: logger, Traces: traces})
	if err != nil {
		return err
	}
	if err := service.Prepare(ctx, database, service.TaskQueue); err != nil {
		return err
	}
	temporal, err := service.Dial(*server, logger)
	if err != nil {
		return err
	}
	defer temporal.Close()
	rest, err := monitor.ListenLoopback(ctx, *listen)
	if err != nil {
		return err
	}
	logger.Info("workflows served", "address", rest.Addr().String())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- answer(ctx, rest, &api.API{Database: database, Logger: logger, Monitor: watched})
	}()
	s := service.Service{
		Database: database, Temporal: temporal, Logger: logger, Monitor: watched,
		Hosts: strings.FieldsFunc(*hosts, func(r rune) bool { return r == ',' }),
	}
	err = s.Run(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// answer serves the REST interface until ctx ends.
func answer(ctx context.Context, listener net.Listener, a *api.API) error {
	server := &http.Server{Handler: a.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
