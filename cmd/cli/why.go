package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/explain"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "why ID",
		Short:   "Say why a job is not running, and when it should",
		Long:    "Lists the conditions of a job's start, in order: other jobs, due time, open queue, limits,\njobs before it, workers. Reads a bounded number of rows.\nIf running jobs have to end first, the start is an estimate by how long jobs ran in the last hour.",
		Example: "  sluice why 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice why 01a1fb72-1dea-7abc-8fc6-99e4817522bb -o json",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withJob(command.Context(), args[0], func(ctx context.Context, store sluice.Store, _ *sluice.Client, id sluice.ID) error {
				why, err := explain.Job(ctx, store, id)
				if err != nil {
					return fmt.Errorf("job %s: %w", id, err)
				}
				why.Job.Payload = nil // irrelevant here, and may be large
				return a.printNamed(why, id.String(), func() error { return a.printWhy(why) })
			})
		},
	}
}

func (a *app) printWhy(why explain.Explanation) error {
	err := printTable(a, why.Reasons, []column[explain.Reason]{
		{"REASON", func(g explain.Reason) string { return g.Name }, false},
		{"", func(g explain.Reason) string {
			if g.Open {
				return "open"
			}
			return "CLOSED"
		}, false},
		{"BECAUSE", func(g explain.Reason) string { return g.Summary }, false},
	})
	if err != nil {
		return err
	}
	for _, g := range why.Reasons {
		if g.Repair == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.stdout, "do (%s): %s\n", g.Name, g.Repair); err != nil {
			return err
		}
	}
	if why.Job.State != sluice.StateQueued && why.Start.IsZero() {
		return nil
	}
	a.note("%s", startSentence(why))
	return nil
}

func startSentence(why explain.Explanation) string {
	switch wait := why.Start.Sub(why.Now); {
	case why.Start.IsZero():
		return "when it starts is not known: it depends on the reasons that are closed"
	case wait <= 0:
		return "it should start now"
	case why.Estimate != "":
		return fmt.Sprintf("it may start at about %s, in %s, by an estimate: %s", why.Start.UTC().Format(time.RFC3339), draw.Duration(wait), why.Estimate)
	default:
		return fmt.Sprintf("it should start at %s, in %s", why.Start.UTC().Format(time.RFC3339), draw.Duration(wait))
	}
}
