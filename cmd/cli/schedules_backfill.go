package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
)

func (a *app) scheduleBackfillCommand() *cobra.Command {
	var from, to string
	var dryRun bool
	var limit int
	var pace paceFlags
	command := &cobra.Command{
		Use:   "backfill NAME",
		Short: "Make the jobs of a schedule's fires in a range of time",
		Long: `Makes the job of each fire from one instant to another, both included, as an operation: upkeep does
it, at the rate you say, and waits while the queue is full. A fire whose job the store still has makes
no second one. It pays no heed to unfinished jobs, except that with the overlap rules "queue one" and
"queue all" jobs run one at a time.`,
		Example: "  sluice schedules backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --dry-run\n" +
			"  sluice schedules backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z --rate 10/m --detach",
		Args: arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			begin, err := parseTime("--from", from)
			if err != nil {
				return err
			}
			end, err := parseTime("--to", to)
			if err != nil {
				return err
			}
			op := operation.Operation{
				Kind: operation.KindBackfill, Backfill: &operation.Backfill{Schedule: args[0], From: begin, To: end}, Limit: limit, Rate: pace.rate,
			}
			if dryRun {
				return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
					return a.previewBackfill(ctx, store, op)
				})
			}
			return a.backfill(command.Context(), op, pace.detach)
		},
	}
	flags := command.Flags()
	flags.StringVar(&from, "from", "", "the first instant, such as 2026-11-01T00:00:00Z (required)")
	flags.StringVar(&to, "to", "", "the last instant (required)")
	flags.BoolVar(&dryRun, "dry-run", false, "only list the fires")
	flags.IntVar(&limit, "limit", 0, "most jobs; 0: all")
	pace.add(command, operation.KindBackfill)
	return command
}

// backfill starts a backfill and watches it.
func (a *app) backfill(ctx context.Context, op operation.Operation, detach bool) error {
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if op, err = operation.Start(limited, store, op, a.act("requested with `sluice`")); err != nil {
		return err
	}
	a.warnOfNoUpkeep(limited, store)
	if detach {
		return a.printBegun(op)
	}
	a.note("operation %s began", op.ID)
	return a.watchOperation(ctx, store, op)
}

func (a *app) previewBackfill(ctx context.Context, store sluice.Store, op operation.Operation) error {
	s, err := schedule.Read(ctx, store, op.Backfill.Schedule)
	if err != nil {
		return err
	}
	instants, err := schedule.Between(s, op.Backfill.From, op.Backfill.To, schedule.MaxBackfill)
	if err != nil {
		return err
	}
	if op.Limit > 0 {
		instants = instants[:min(len(instants), op.Limit)]
	}
	return a.printOne(instants, func() error {
		for _, at := range instants {
			if _, err := fmt.Fprintln(a.stdout, localText(at, s.Zone)); err != nil {
				return err
			}
		}
		pace := ""
		if !op.Rate.IsZero() {
			pace = fmt.Sprintf("; about %s at %s", draw.Duration(time.Duration(float64(len(instants))/op.Rate.PerSecond()*float64(time.Second))), op.Rate)
		}
		fires := "fires"
		if len(instants) == 1 {
			fires = "fire"
		}
		a.note("%s %s%s; nothing was enqueued", draw.Count(len(instants)), fires, pace)
		return nil
	})
}
