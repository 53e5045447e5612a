package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

func (a *app) deadCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "dead",
		Short:   "List dead letters, requeue or discard them",
		Example: "  sluice dead ls payments\n  sluice dead requeue --all --queue payments --reason \"bank is back\"",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.listDead(command.Context(), sluice.JobFilter{Limit: 100})
		},
	}
	var f filterFlags
	list := &cobra.Command{
		Use:     "ls [QUEUE]",
		Short:   "List dead letters, the newest first",
		Example: "  sluice dead ls\n  sluice dead ls payments --tenant acme -o json",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			filter, err := f.parse()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if f.queue != "" {
					return usagef("the queue is given twice: %s and --queue", args[0])
				}
				filter.Queue = args[0]
			}
			return a.listDead(command.Context(), filter)
		},
	}
	f.add(list, 100)
	list.Flags().StringVar(&f.before, "before", "", "the page after the one that ended with this id")
	requeue := a.requeuing(&cobra.Command{
		Use:   "requeue ID…|-",
		Short: "Give dead letters a new life, due now",
		Example: `  sluice dead requeue 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "bank is back"
  sluice dead requeue --all --queue payments --limit 10`,
	}, &selection{})
	discard := a.actCommand(&cobra.Command{
		Use:   "discard ID…|-",
		Short: "Delete dead letters that were dealt with; the audit keeps who did it and why",
		Example: `  sluice dead discard 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "paid by hand"
  sluice dead ls payments --label batch=7 -o ids | sluice dead discard -`,
	}, &selection{}, func() (verb, error) {
		return verb{"discarded", []sluice.State{sluice.StateDead}, func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.Prune(ctx, ids, a.act(""))
		}}, nil
	})
	command.AddCommand(list, requeue, discard)
	return command
}

// listDead prints what a person needs to decide (C-84).
func (a *app) listDead(ctx context.Context, filter sluice.JobFilter) error {
	filter.States = []sluice.State{sluice.StateDead}
	return a.listJobs(ctx, filter, "no dead letters", []column[sluice.Job]{
		{"ID", func(j sluice.Job) string { return j.ID.String() }, false},
		{"QUEUE", func(j sluice.Job) string { return j.Queue }, false},
		{"TENANT", func(j sluice.Job) string { return orDash(j.Tenant) }, false},
		{"ATTEMPTS", func(j sluice.Job) string { return fmt.Sprint(j.Attempts) }, true},
		{"CREATED", func(j sluice.Job) string { return ago(j.CreatedAt) }, true},
		{"DIED", func(j sluice.Job) string { return ago(j.FinishedAt) }, true},
		{"ERROR", func(j sluice.Job) string { return orDash(j.Error) }, false},
	})
}
