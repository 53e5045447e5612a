// Command payments schedules payments in two phases: Temporal takes them in, Sluice keeps them until they are due, and lets
// them through to Temporal at the pace that its settings allow.
//
//	payments serve   the service: REST endpoints, a Kafka consumer, workers, dispatcher, upkeep
//	payments demo    a wave of payments with an outage in the middle, and a proof by SQL at the end
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/demo"
	"github.com/sluice-queue/sluice/apps/payments/kafka"
	"github.com/sluice-queue/sluice/apps/payments/service"
)

const usage = "usage: payments serve|demo [flags]; payments demo -h lists them"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "serve":
		return runServe(ctx, args[1:])
	case "demo":
		return runDemo(ctx, args[1:])
	}
	return fmt.Errorf("unknown command %q; %s", args[0], usage)
}

func runDemo(ctx context.Context, args []string) error {
	o := demo.Options{Out: os.Stdout}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.IntVar(&o.Payments, "payments", 5000, "how many payments")
	flags.DurationVar(&o.DueIn, "due-in", 20*time.Second, "when all of them fall due, from the start of phase A")
	flags.Func("rate", "how many start per time, such as 500/5s (default: as the queue's settings say)", func(text string) (err error) {
		o.Rate, err = sluice.ParseRate(text)
		return err
	})
	flags.DurationVar(&o.Outage, "outage", 15*time.Second, "how long the Temporal server is gone in the middle; 0: not at all")
	flags.StringVar(&o.Temporal, "temporal", "", "address of a Temporal server to use, without an outage (default: one of the demo's own)")
	flags.StringVar(&o.Namespace, "namespace", "default", "Temporal namespace")
	flags.StringVar(&o.Folder, "folder", "", "where the database and the logs go (default: a new folder)")
	flags.DurationVar(&o.Limit, "limit", 30*time.Minute, "how long all of it may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, err := demo.Run(ctx, o)
	return err
}

func runServe(ctx context.Context, args []string) error {
	o := service.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "where the REST endpoints are")
	flags.StringVar(&o.DB, "db", or(os.Getenv("PAYMENTS_DB"), "payments.db"), "PostgreSQL URL, or path of a SQLite file; PAYMENTS_DB")
	flags.StringVar(&o.Temporal, "temporal", or(os.Getenv("TEMPORAL_TARGET"), "localhost:7233"), "address of the Temporal server; TEMPORAL_TARGET")
	flags.StringVar(&o.Namespace, "namespace", or(os.Getenv("TEMPORAL_NAMESPACE"), "default"), "Temporal namespace; TEMPORAL_NAMESPACE")
	flags.BoolVar(&o.BySchedule, "by-schedule", false, "let a Temporal Schedule begin the dispatcher's cycles")
	source := kafkaFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	source.Logger = o.Logger
	s, err := service.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, s, *listen, *source), s.Close())
}

// serve lets the service work, answers requests and reads from Kafka if it has brokers, until ctx ends or one of these fails.
func serve(ctx context.Context, s *service.Service, listen string, source kafka.Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Addr: listen, Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	taken := make(chan error, 1)
	go func() {
		if len(source.Brokers) == 0 {
			taken <- nil
			return
		}
		defer cancel()
		taken <- takeIn(ctx, s, source)
	}()
	answered := make(chan error, 1)
	go func() {
		defer cancel()
		answered <- server.ListenAndServe()
	}()
	go func() {
		<-ctx.Done()
		late, end := context.WithTimeout(context.Background(), 10*time.Second)
		defer end()
		_ = server.Shutdown(late) // what is still answered then is cut off
	}()
	err := s.Run(ctx)
	cancel()
	err = errors.Join(err, <-taken)
	if failed := <-answered; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
