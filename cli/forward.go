package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
)

// forwardEnv names the variable that holds the address of the central store.
const forwardEnv = "SLUICE_FORWARD_TO"

// forwardFlags say from where to where jobs are forwarded, and how.
type forwardFlags struct {
	from, to string
	once     bool
	noUpkeep bool
	options  forward.Options
}

func (a *app) forwardCommand() *cobra.Command {
	var f forwardFlags
	command := &cobra.Command{
		Use:   "forward QUEUE…",
		Short: "Move the jobs of queues to a central store, whenever it can be reached",
		Long: `Who enqueues into a local store never waits for the network; this takes the jobs on to a central one. Each arrives
once, by its id, with all that it was enqueued with, and those of an order key arrive in their order. Jobs that are
not due yet go too: the centre keeps them until they are. Here a job is completed when the centre has it.

While the centre cannot be reached, jobs wait here, no attempt is counted, and it is tried again after a while. A job
that breaks a rule of the centre's, such as its payload_limit, is a dead letter here. Killed at any moment, run twice
by mistake: nothing is lost or doubled. Do not let workers run for the same queues here.`,
		Example: "  sluice forward events uploads --from sqlite:edge.db --to postgres://sluice@db.example.com/jobs\n  sluice forward events --from sqlite:edge.db --to postgres://sluice@db.example.com/jobs --once\n  sluice forward status --from sqlite:edge.db",
		Args:    arguments(1, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			f.options.Queues = queues
			a.takeFrom(f.from)
			return a.forward(command.Context(), f)
		},
	}
	flags := command.Flags()
	a.metrics.addTo(flags)
	flags.StringVar(&f.from, "from", "", "the local store (default: --db)")
	flags.StringVar(&f.to, "to", os.Getenv(forwardEnv), "the central store (default: $"+forwardEnv+")")
	flags.StringVar(&f.options.Centre, "name", "", "what the centre is called here; what is on its way goes on to this name only (default: its host and database)")
	flags.IntVar(&f.options.Batch, "batch", 500, "jobs sent in one call at the most")
	flags.Var(newDuration(&f.options.Poll, time.Second), "poll", "how often to look when nobody says that there are jobs")
	flags.Var(newDuration(&f.options.Drain, 30*time.Second), "grace", "how long what was begun may go on after the first interrupt")
	flags.BoolVar(&f.once, "once", false, "forward what waits now, and end")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave recovering, expiring and pruning here to others")
	command.AddCommand(a.forwardStatusCommand())
	return command
}

// takeFrom makes --from the store of the command, where it is given.
func (a *app) takeFrom(from string) {
	if from != "" {
		a.db = from
	}
}

func (a *app) forward(ctx context.Context, f forwardFlags) error {
	if f.to == "" {
		return codedError{usagef("no central store is named"), exitUsage, "add --to postgres://USER@HOST/DATABASE, or set " + forwardEnv}
	}
	for _, queue := range f.options.Queues {
		if err := sluice.CheckQueueName(queue); err != nil {
			return err
		}
	}
	logger := a.logger()
	f.options.Logger, f.options.PayloadChecker, f.options.LogLimit, f.options.Scrub = logger, schema.New(), a.log.limit, a.log.clean()
	if f.options.Centre == "" {
		f.options.Centre = centreName(f.to)
	}
	local, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(local)
	if f.once {
		return a.forwardOnce(ctx, local, f)
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	if !f.noUpkeep {
		tend := upkeep.Options{PayloadChecker: schema.New(), Logger: logger, LogLimit: f.options.LogLimit, Scrub: f.options.Scrub}
		beside.Go(func() { _ = upkeep.New(local, tend).Run(ctx) }) // it returns nil
	}
	centre, err := a.awaitCentre(ctx, f.to)
	if errors.Is(err, context.Canceled) { // interrupted before there was anything to drain
		return nil
	}
	if err != nil {
		return err
	}
	defer a.close(centre)
	return forward.New(local, centre, f.options).Run(ctx)
}

func (a *app) forwardOnce(ctx context.Context, local sluice.Store, f forwardFlags) error {
	centre, err := a.openAt(ctx, f.to, false)
	if err != nil {
		return err
	}
	defer a.close(centre)
	sent, err := forward.New(local, centre, f.options).Once(ctx)
	if err != nil {
		return err
	}
	return a.printOne(sent, func() error {
		_, err := fmt.Fprintf(a.stdout, "forwarded %d, duplicates %d, refused %d, uncertain %d\n", sent.Forwarded, sent.Duplicates, sent.Refused, sent.Uncertain)
		return err
	})
}

// centrePatience is how long to wait before the central store is opened again that could not be reached.
var centrePatience = sluice.Backoff{Base: time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second}

// awaitCentre opens the central store, as soon as it can be reached.
func (a *app) awaitCentre(ctx context.Context, to string) (sluice.Store, error) {
	log := a.events()
	defer log.Flush()
	for failures := 1; ; failures++ {
		centre, err := a.openAt(ctx, to, false)
		if err == nil {
			return centre, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !errors.Is(err, sluice.ErrUnavailable) || refusesUs(err) {
			return nil, err
		}
		if failures == 1 {
			log.Tell(event.CentreUnreachable, "", "error", redact(err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(centrePatience.Delay(failures)):
		}
	}
}

// refusesUs reports whether a server is there, and lets nobody with this name or password in, or has no such database.
func refusesUs(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (strings.HasPrefix(server.Code, "28") || server.Code == "3D000")
}

// centreName is what the local store has for a central one: where it is, whoever we are there.
func centreName(address string) string {
	if path, isLite := strings.CutPrefix(address, "sqlite:"); isLite {
		if whole, err := filepath.Abs(path); err == nil {
			return whole
		}
		return path
	}
	if at, err := url.Parse(address); err == nil {
		return at.Host + at.Path
	}
	return redactURL(address)
}

func (a *app) forwardStatusCommand() *cobra.Command {
	var from string
	command := &cobra.Command{
		Use:   "status [QUEUE…]",
		Short: "Tell what waits to be forwarded, and since when",
		Long: `Looks at the local store alone. Without queues it tells of all. What is on the way was sent, and no answer came yet.
What is dead was refused, and what is uncertain may have arrived: both wait for a person.`,
		Example: "  sluice forward status --from sqlite:edge.db\n  sluice forward status events -o json",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			a.takeFrom(from)
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				if len(queues) == 0 {
					all, err := client.Queues(ctx, sluice.QueueFilter{})
					if err != nil {
						return err
					}
					for _, q := range all {
						queues = append(queues, q.Name)
					}
				}
				rows, err := forward.StatusOf(ctx, store, queues)
				if err != nil {
					return err
				}
				return printList(a, rows, func(s forward.Status) string { return s.Queue }, forwardColumns())
			})
		},
	}
	command.Flags().StringVar(&from, "from", "", "the local store (default: --db)")
	return command
}

func forwardColumns() []column[forward.Status] {
	return []column[forward.Status]{
		{"QUEUE", func(s forward.Status) string { return s.Queue }, false},
		{"WAITING", func(s forward.Status) string { return bounded(s.Waiting) }, true},
		{"ON THE WAY", func(s forward.Status) string { return bounded(s.OnTheWay) }, true},
		{"TO", func(s forward.Status) string { return orDash(strings.Join(s.Centres, ", ")) }, false},
		{"SINCE", func(s forward.Status) string { return ago(s.Since) }, true},
		{"DEAD", func(s forward.Status) string { return bounded(s.Dead) }, true},
		{"UNCERTAIN", func(s forward.Status) string { return bounded(s.Uncertain) }, true},
		{"FORWARDERS", func(s forward.Status) string { return count(len(s.Forwarders)) }, true},
	}
}
