package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
)

func (a *app) operationsCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "operations",
		Short:   "Control operations: acts on many jobs that upkeep carries out",
		Example: "  sluice operations ls\n  sluice operations watch 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice operations pause 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason \"bank is slow\"",
	})
	command.AddCommand(a.operationsListCommand(), a.operationGetCommand(), a.operationWatchCommand(),
		a.operationActCommand("pause", "Pause an operation after its current batch; it can resume there", operation.Pause),
		a.operationActCommand("resume", "Resume a paused operation", operation.Resume),
		a.operationActCommand("stop", "End an operation after its current batch; what it did stays done", operation.Stop),
		a.operationPaceCommand())
	return command
}

func (a *app) operationsListCommand() *cobra.Command {
	var open bool
	var before string
	var limit int
	command := &cobra.Command{
		Use:     "ls",
		Short:   "List operations, newest first",
		Example: "  sluice operations ls\n  sluice operations ls --open -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			filter := operation.Filter{Open: open, Limit: limit}
			if before != "" {
				var err error
				if filter.Before, err = parseID(before); err != nil {
					return err
				}
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				found, err := operation.List(ctx, store, filter)
				if err != nil {
					return err
				}
				if len(found) == 0 && a.output == "table" {
					a.note("no operations")
					return nil
				}
				return printList(a, found, func(op operation.Operation) string { return op.ID.String() }, operationColumns())
			})
		},
	}
	command.Flags().BoolVar(&open, "open", false, "only unfinished operations")
	command.Flags().StringVar(&before, "before", "", "continue after this id")
	command.Flags().IntVar(&limit, "limit", 100, "most operations")
	return command
}

func operationColumns() []column[operation.Operation] {
	figure := func(title string, of func(operation.Operation) int) column[operation.Operation] {
		return column[operation.Operation]{title, func(op operation.Operation) string { return draw.Count(of(op)) }, true}
	}
	return []column[operation.Operation]{
		{"ID", func(op operation.Operation) string { return op.ID.String() }, false},
		{"KIND", func(op operation.Operation) string { return string(op.Kind) }, false},
		{"QUEUE", func(op operation.Operation) string { return orDash(op.Query.Queue) }, false},
		{"STATE", func(op operation.Operation) string { return string(op.State) }, false},
		figure("DONE", func(op operation.Operation) int { return op.Done }),
		figure("SKIPPED", func(op operation.Operation) int { return op.Skipped }),
		figure("REFUSED", func(op operation.Operation) int { return op.Failed }),
		{"LEFT", leftOf, true},
		{"BEGAN", func(op operation.Operation) string { return ago(op.CreatedAt) }, true},
		{"BY", func(op operation.Operation) string { return op.By }, false},
		{"REASON", func(op operation.Operation) string { return orDash(op.Reason) }, false},
	}
}

// leftOf says how many jobs an operation will still act on; a dash: that is not known.
func leftOf(op operation.Operation) string {
	if _, known := op.Total(); known {
		return draw.Count(op.Left())
	}
	return "-"
}

// operationDetail is an operation with its audit.
type operationDetail struct {
	operation.Operation
	Audit []sluice.AuditEntry `json:"audit"`
}

func (a *app) operationGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "get ID",
		SuggestFor: []string{"show"},
		Short:      "Show everything about an operation",
		Example:    "  sluice operations get 01a1fb72-1dea-7abc-8fc6-99e4817522bb",
		Args:       arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withJob(command.Context(), args[0], func(ctx context.Context, store sluice.Store, client *sluice.Client, id sluice.ID) error {
				op, err := operation.Read(ctx, store, id)
				if err != nil {
					return err
				}
				told, err := client.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectOperation, Name: id.String()})
				if err != nil {
					return err
				}
				return a.printNamed(operationDetail{op, told}, id.String(), func() error { return a.printOperation(op, told) })
			})
		},
	}
}

func (a *app) printOperation(op operation.Operation, told []sluice.AuditEntry) error {
	query, err := json.Marshal(op.Query)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	line, instant := detailLines(&text, time.RFC3339)
	line("id", op.ID.String())
	line("kind", string(op.Kind))
	line("state", string(op.State))
	line("why", oneLine(op.Why))
	if of := op.Backfill; of != nil {
		line("fires", fmt.Sprintf("of schedule %s, %s to %s", of.Schedule, of.From.Format(time.RFC3339), of.To.Format(time.RFC3339)))
	} else {
		line("jobs", compact(query))
	}
	line("progress", operationLine(op))
	total, known := op.Total()
	line("done", fmt.Sprintf("%s%s  (skipped %s, refused %s, of %s)", atLeast(op), draw.Count(op.Done), draw.Count(op.Skipped), draw.Count(op.Failed), draw.Total(total, known, op.ExpectedMore)))
	if !op.Rate.IsZero() {
		line("pace", op.Rate.String())
	}
	if op.StopIfFailed > 0 {
		line("stops if", fmt.Sprintf("more than %s fail again  (watched %s, of which %s failed; %s are not over)",
			percentage(op.StopIfFailed), draw.Count(op.WatchedEnded), draw.Count(op.WatchedFailed), draw.Count(op.Watching)))
	}
	if op.Edit != nil {
		line("changes", op.Edit.String())
	}
	if op.Canary > 0 {
		line("canary", draw.Count(op.Canary))
	}
	line("by", op.By)
	line("reason", oneLine(op.Reason))
	instant("began", op.CreatedAt)
	instant("due at", op.DueAt)
	instant("last step", op.UpdatedAt)
	instant("ended", op.EndedAt)
	for _, e := range slices.Backward(told) {
		line("audit", fmt.Sprintf("%s %s by %s: %s", e.At.Format(time.RFC3339), stateAfter(e), e.Actor, orDash(oneLine(e.Reason))))
	}
	_, err = a.stdout.Write(text.Bytes())
	return err
}

// stateAfter is an operation's state and rate after a change.
func stateAfter(e sluice.AuditEntry) string {
	var after struct{ State, Rate string }
	if json.Unmarshal(e.After, &after) != nil {
		return string(e.Event)
	}
	if after.Rate != "0" {
		after.State += " at " + after.Rate
	}
	return after.State
}

func (a *app) operationWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "watch ID",
		Short:   "Show an operation's progress until it ends",
		Example: "  sluice operations watch 01a1fb72-1dea-7abc-8fc6-99e4817522bb",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			ctx := command.Context()
			store, err := a.open(ctx)
			if err != nil {
				return err
			}
			defer a.close(store)
			op, err := a.lookAtOperation(ctx, store, id)
			if err != nil {
				return err
			}
			if op.EndedAt.IsZero() {
				a.warnOfNoUpkeep(ctx, store)
			}
			return a.watchOperation(ctx, store, op)
		},
	}
}

// operationActCommand makes a command that changes an operation.
func (a *app) operationActCommand(name, says string, do func(context.Context, sluice.Store, sluice.ID, sluice.Act) (operation.Operation, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " ID",
		Short:   says,
		Example: fmt.Sprintf("  sluice operations %s 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason \"bank is slow\"", name),
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.changeOperation(command.Context(), args[0], func(ctx context.Context, store sluice.Store, id sluice.ID) (operation.Operation, error) {
				return do(ctx, store, id, a.act(""))
			})
		},
	}
}

func (a *app) operationPaceCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "pace ID RATE",
		Short:   "Change an operation's rate, such as 50/s; 0: as fast as upkeep can",
		Example: "  sluice operations pace 01a1fb72-1dea-7abc-8fc6-99e4817522bb 50/s --reason \"bank keeps up\"",
		Args:    arguments(2, 2),
		RunE: func(command *cobra.Command, args []string) error {
			pace, err := sluice.ParseRate(args[1])
			if err != nil {
				return usagef("the rate %w", err)
			}
			return a.changeOperation(command.Context(), args[0], func(ctx context.Context, store sluice.Store, id sluice.ID) (operation.Operation, error) {
				return operation.SetRate(ctx, store, id, pace, a.act(""))
			})
		},
	}
}

func (a *app) changeOperation(ctx context.Context, text string, change func(context.Context, sluice.Store, sluice.ID) (operation.Operation, error)) error {
	return a.withJob(ctx, text, func(ctx context.Context, store sluice.Store, _ *sluice.Client, id sluice.ID) error {
		op, err := change(ctx, store, id)
		if err != nil {
			return err
		}
		return a.printNamed(op, op.ID.String(), func() error {
			_, err := fmt.Fprintf(a.stdout, "operation %s is %s: %s\n", op.ID, op.State, operationLine(op))
			return err
		})
	})
}
