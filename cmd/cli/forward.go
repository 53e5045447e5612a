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
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
)

// forwardEnv is the variable with the address of the central store.
const forwardEnv = "SLUICE_FORWARD_TO"

// forwardFlags say from where to where, and how, jobs are forwarded.
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
		Short: "Move jobs of queues to a central store whenever it is reachable",
		Long: `Programs enqueue into a local store without waiting for the network; forward moves the jobs to a
central one. Each arrives once, by its id, with all its options, and in order within an order key.
Jobs not due yet move too; the centre keeps them. A job completes here when the centre has it.

While the centre is unreachable, jobs wait, no attempt counts, and forward retries. A job that
breaks a rule of the centre, such as payload_limit, is a dead letter here. Killed at any moment or
run twice, it loses and doubles nothing. Do not run workers for the same queues here.`,
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
	a.addVersionTo(flags)
	flags.StringVar(&f.from, "from", "", "local store (default: --db)")
	flags.StringVar(&f.to, "to", os.Getenv(forwardEnv), "central store (default: $"+forwardEnv+")")
	flags.StringVar(&f.options.Centre, "name", "", "the centre's name here; jobs under way go to this name only (default: its host and database)")
	flags.IntVar(&f.options.Batch, "batch", 500, "most jobs per call")
	flags.Var(newDuration(&f.options.Poll, time.Second), "poll", "how often to look for jobs without notification")
	flags.Var(newDuration(&f.options.Drain, 30*time.Second), "grace", "time for begun work after the first interrupt")
	flags.BoolVar(&f.once, "once", false, "forward the jobs that wait now, then end")
	flags.BoolVar(&f.noUpkeep, "no-upkeep", false, "leave recovering, expiring and pruning here to others")
	command.AddCommand(a.forwardStatusCommand())
	return command
}

// takeFrom makes --from the command's store, if given.
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
		if err := sluice.CheckOwnQueueName(queue); err != nil {
			return err
		}
	}
	logger := a.logger()
	f.options.Version = a.version
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
		tend := upkeep.Options{Version: a.version, PayloadChecker: schema.New(), Logger: logger, LogLimit: f.options.LogLimit, Scrub: f.options.Scrub}
		beside.Go(func() { _ = upkeep.New(local, tend).Run(ctx) }) // nil, or somebody stopped it
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

// centrePatience is how long to wait before opening an unreachable central store again.
var centrePatience = sluice.Backoff{Base: time.Second, Factor: 2, Max: time.Minute, Jitter: time.Second}

// awaitCentre opens the central store as soon as it is reachable.
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
			log.Emit(event.CentreUnreachable, "", "error", redact(err.Error()))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(centrePatience.Delay(failures)):
		}
	}
}

// refusesUs reports whether a server answers but refuses the user or password, or lacks the database.
func refusesUs(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (strings.HasPrefix(server.Code, "28") || server.Code == "3D000")
}

// centreName is the local name of a central store: its place, without the user.
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
		Short: "Show how many jobs wait to be forwarded, and since when",
		Long: `Reads the local store alone; without arguments, all queues. Jobs on the way were sent, not
answered. Dead jobs were refused; uncertain ones may have arrived. Both wait for a person.`,
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
	command.Flags().StringVar(&from, "from", "", "local store (default: --db)")
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
		{"FORWARDERS", func(s forward.Status) string { return draw.Count(len(s.Forwarders)) }, true},
	}
}
