package cli

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/engine"
)

func (a *app) runsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "runs [QUEUE…]",
		Short: "List orphan runs, possibly open after their jobs ended, or end them by force",
		Long: `Lists runs of cancelled jobs that their engines have not reported as ended. They count as in
flight, and requeued jobs wait for them. Upkeep asks them to end; terminate those that do not.`,
		Example: "  sluice runs\n  sluice runs payment -o json",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				runs, now, err := orphanRuns(ctx, store, queues)
				if err != nil {
					return err
				}
				return a.printRuns(runs, now)
			})
		},
	}
	command.AddCommand(a.runsTerminateCommand())
	return command
}

// runsPage is how many runs one call lists.
const runsPage = 1000

// orphanRuns lists the orphan runs of the named queues, or all, with the store's clock.
func orphanRuns(ctx context.Context, store sluice.Store, names []string) (runs []engine.OrphanRun, clock sluice.Queue, err error) {
	queues, err := chosenQueues(ctx, store, names)
	if err != nil {
		return nil, clock, err
	}
	for _, q := range queues {
		clock = q
		for after := (engine.OrphanRun{}); ; {
			page, err := engine.Given(store).OrphanRuns(ctx, q.Name, after, runsPage)
			if err != nil {
				return nil, clock, err
			}
			runs = append(runs, page...)
			if len(page) < runsPage {
				break
			}
			after = page[len(page)-1]
		}
	}
	return runs, clock, nil
}

func (a *app) printRuns(runs []engine.OrphanRun, clock sluice.Queue) error {
	return printList(a, runs, func(r engine.OrphanRun) string { return r.JobID.String() }, []column[engine.OrphanRun]{
		{"JOB", func(r engine.OrphanRun) string { return r.JobID.String() }, false},
		{"QUEUE", func(r engine.OrphanRun) string { return r.Queue }, false},
		{"TENANT", func(r engine.OrphanRun) string { return r.Tenant }, false},
		{"ENGINE", func(r engine.OrphanRun) string { return r.Engine }, false},
		{"RUN", func(r engine.OrphanRun) string { return r.Ref }, false},
		{"SINCE", func(r engine.OrphanRun) string { return draw.Duration(clock.Now.Sub(r.CancelledAt)) }, true},
		{"UPKEEP", upkeepOfRun, false},
	})
}

// upkeepOfRun says what upkeep does about a run.
func upkeepOfRun(r engine.OrphanRun) string {
	switch {
	case r.Terminate:
		return "terminates it"
	case r.Started:
		return "asks it to end"
	}
	return "looks whether it was started"
}

func (a *app) runsTerminateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "terminate ID…|- --reason WHY",
		Short: "End runs of cancelled jobs by force",
		Long: `At its next look, upkeep terminates the possibly open runs of these jobs at their engine, even if
they ignore a cancel. Begun work stays as it is, without cleanup. Jobs that are not cancelled are
refused: use "sluice cancel" first, which asks their runs to end.`,
		Example: `  sluice runs terminate 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "it hangs, the bank has no such payment"`,
		RunE: func(command *cobra.Command, args []string) error {
			ids, err := a.parseIDs(args)
			if err != nil {
				return err
			}
			act := a.act("")
			if act.Reason == "" {
				return usagef("ending a run by force needs a --reason; it is kept in the audit")
			}
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				err := client.Terminate(ctx, ids, act)
				return a.reportAct(command, verb{name: "asked upkeep to terminate the runs of"}, len(ids), err)
			})
		},
	}
}
