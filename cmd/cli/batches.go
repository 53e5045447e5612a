package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
)

// exampleBatch is the ID in examples.
const exampleBatch = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"

func (a *app) batchesCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:   "batches",
		Short: "Control batches: groups of jobs that enqueue callbacks when all have ended",
		Example: "  sluice batches open import --on-complete reports\n  sluice batches ls --unfinished\n" +
			"  sluice batches show " + exampleBatch + "\n  sluice batches cancel " + exampleBatch + " --reason \"wrong file\" --detach",
	})
	retry := &paceFlags{}
	retryCommand := a.batchActCommand("retry", "Requeue the dead jobs of a batch; needs --reason", &retry.detach,
		func(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (operation.Operation, error) {
			how := operation.Operation{Rate: retry.rate, Canary: retry.canary, StopIfFailed: float64(retry.stop)}
			return batch.Retry(ctx, store, id, how, act)
		})
	retry.add(retryCommand, operation.KindRequeue)
	command.AddCommand(a.batchesListCommand(), a.batchShowCommand(), a.batchOpenCommand(), a.batchCloseCommand(),
		a.batchOperateCommand("cancel", "Close a batch, and cancel its unfinished jobs", batch.Cancel),
		a.batchOperateCommand("pause", "Hold the waiting jobs of a batch, and those added later; needs --reason", batch.Pause),
		a.batchOperateCommand("resume", "End the pause of a batch, and release its held jobs", batch.Resume),
		retryCommand)
	return command
}

func (a *app) batchesListCommand() *cobra.Command {
	var filter batch.Filter
	var parent, before string
	command := &cobra.Command{
		Use:     "ls",
		Short:   "List batches, newest first",
		Example: "  sluice batches ls --unfinished\n  sluice batches ls --parent " + exampleBatch + " -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) (err error) {
			for text, into := range map[string]*sluice.ID{parent: &filter.Parent, before: &filter.Before} {
				if text == "" {
					continue
				}
				if *into, err = parseID(text); err != nil {
					return err
				}
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				found, err := batch.List(ctx, store, filter)
				if err != nil {
					return err
				}
				if len(found) == 0 && a.output == "table" {
					a.note("no batches; `sluice batches open` makes one")
					return nil
				}
				return printList(a, found, func(b batch.Batch) string { return b.ID.String() }, batchColumns())
			})
		},
	}
	command.Flags().StringVar(&parent, "parent", "", "only batches directly in this one")
	command.Flags().BoolVar(&filter.Unfinished, "unfinished", false, "only batches that are not complete")
	command.Flags().StringVar(&before, "before", "", "continue after this id")
	command.Flags().IntVar(&filter.Limit, "limit", 100, "most batches")
	return command
}

func batchColumns() []column[batch.Batch] {
	figure := func(title string, of func(batch.Counts) int) column[batch.Batch] {
		return column[batch.Batch]{title, func(b batch.Batch) string { return draw.Count(of(b.Counts)) }, true}
	}
	return []column[batch.Batch]{
		{"BATCH", func(b batch.Batch) string { return b.ID.String() }, false},
		{"NAME", func(b batch.Batch) string { return orDash(oneLine(b.Name)) }, false},
		{"STATE", batchState, false},
		figure("JOBS", func(c batch.Counts) int { return c.Total }),
		figure("UNFINISHED", batch.Counts.Unfinished),
		figure("DEAD", func(c batch.Counts) int { return c.Dead }),
		figure("CANCELLED", func(c batch.Counts) int { return c.Cancelled }),
		{"OPENED", func(b batch.Batch) string { return ago(b.CreatedAt) }, true},
	}
}

// batchState says where a batch is, and whether it is paused.
func batchState(b batch.Batch) string {
	if b.Paused != "" {
		return string(b.State()) + ", paused"
	}
	return string(b.State())
}

// batchDetail is a batch with its state.
type batchDetail struct {
	batch.Batch
	State    batch.State `json:"state"`
	Progress float64     `json:"progress"`
	ETA      string      `json:"eta,omitempty"`
}

func (a *app) batchShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "show ID",
		SuggestFor: []string{"get"},
		Short:      "Show a batch with its counts, progress and callbacks",
		Example:    "  sluice batches show " + exampleBatch,
		Args:       arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withBatch(command.Context(), args[0], func(ctx context.Context, store sluice.Store, id sluice.ID) error {
				b, err := batch.Read(ctx, store, id)
				if err != nil {
					return err
				}
				detail := batchDetail{Batch: b, State: b.State(), Progress: b.Progress()}
				if eta, known := b.ETA(); known && b.Unfinished() > 0 {
					detail.ETA = draw.Duration(eta)
				}
				return a.printNamed(detail, id.String(), func() error { return a.printBatch(detail) })
			})
		},
	}
}

func (a *app) printBatch(d batchDetail) error {
	b := d.Batch
	var text bytes.Buffer
	line, instant := detailLines(&text, time.RFC3339)
	line("batch", b.ID.String())
	line("name", oneLine(b.Name))
	if !b.Parent.IsZero() {
		line("parent", b.Parent.String())
	}
	line("state", string(d.State))
	if b.Paused != "" {
		line("paused", oneLine(b.Paused))
	}
	line("jobs", fmt.Sprintf("%s  (%s unfinished, %s completed, %s dead, %s cancelled)", draw.Count(b.Total), draw.Count(b.Unfinished()),
		draw.Count(b.Completed), draw.Count(b.Dead), draw.Count(b.Cancelled)))
	if b.Batches > 0 {
		line("batches", fmt.Sprintf("%s  (%s complete)", draw.Count(b.Batches), draw.Count(b.BatchesComplete)))
	}
	line("progress", draw.Percent(0, d.Progress)+" %")
	line("ETA", d.ETA)
	instant("opened", b.CreatedAt)
	line("opened by", b.CreatedBy)
	instant("closed", b.ClosedAt)
	instant("complete", b.CompletedAt)
	instant("succeeded", b.SucceededAt)
	instant("first death", b.DiedAt)
	for _, c := range []struct {
		name     string
		callback *batch.Callback
	}{{"on complete", b.OnComplete}, {"on success", b.OnSuccess}, {"on death", b.OnDeath}} {
		if c.callback != nil {
			line(c.name, strings.TrimSpace("queue "+c.callback.Queue+" "+compact(c.callback.Payload)))
		}
	}
	_, err := a.stdout.Write(text.Bytes())
	return err
}

func (a *app) batchOpenCommand() *cobra.Command {
	var parent, id string
	var complete, success, death string
	command := &cobra.Command{
		Use:   "open [NAME]",
		Short: "Open a batch, and print its id",
		Long: `Opens a batch, and prints its id for "sluice enqueue --batch". A callback is QUEUE, or QUEUE=PAYLOAD
with a payload in JSON, in which {{batch}} becomes the id. Without a payload, its job gets the id,
the event and the counts. "sluice batches close" lets no more jobs in.`,
		Example: "  sluice batches open import --on-complete reports\n  sluice batches open --on-death 'alarms={\"batch\":\"{{batch}}\"}'",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			b := batch.Batch{Name: strings.Join(args, "")}
			for text, into := range map[string]*sluice.ID{parent: &b.Parent, id: &b.ID} {
				if text == "" {
					continue
				}
				if *into, err = parseID(text); err != nil {
					return err
				}
			}
			b.OnComplete, b.OnSuccess, b.OnDeath = callbackOf(complete), callbackOf(success), callbackOf(death)
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				var taken *sluice.InvalidError
				opened, err := batch.Open(ctx, store, b, a.act(""))
				if errors.As(err, &taken) && taken.Field == "id" {
					return codedError{err, exitRefused, "look at the batch: `sluice batches show " + b.ID.String() + "`"}
				}
				if err != nil {
					return err
				}
				b = opened
				return a.printOne(b, func() error {
					_, err := fmt.Fprintln(a.stdout, b.ID)
					return err
				})
			})
		},
	}
	command.Flags().StringVar(&complete, "on-complete", "", "callback when all jobs have ended: QUEUE or QUEUE=PAYLOAD")
	command.Flags().StringVar(&success, "on-success", "", "callback when all jobs have completed")
	command.Flags().StringVar(&death, "on-death", "", "callback when the first job dies")
	command.Flags().StringVar(&parent, "parent", "", "id of the open batch that it is in, which completes only after it")
	command.Flags().StringVar(&id, "id", "", "batch id (default: new); the same id opens a batch once")
	return command
}

// callbackOf reads QUEUE or QUEUE=PAYLOAD. Empty: nil.
func callbackOf(text string) *batch.Callback {
	if text == "" {
		return nil
	}
	queue, payload, given := strings.Cut(text, "=")
	c := &batch.Callback{Queue: queue}
	if given {
		c.Payload = json.RawMessage(payload)
	}
	return c
}

func (a *app) batchCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "close ID",
		Short:   "Let no more jobs into a batch, so that it can complete",
		Example: "  sluice batches close " + exampleBatch,
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withBatch(command.Context(), args[0], func(ctx context.Context, store sluice.Store, id sluice.ID) error {
				if err := batch.Close(ctx, store, id, a.act("")); err != nil {
					return err
				}
				a.warnOfNoUpkeep(ctx, store)
				b, err := batch.Read(ctx, store, id)
				if err != nil {
					return err
				}
				return a.printNamed(b, id.String(), func() error {
					_, err := fmt.Fprintf(a.stdout, "closed, with %s, %s unfinished\n", jobs(b.Total), draw.Count(b.Unfinished()))
					return err
				})
			})
		},
	}
}

// withBatch opens the store for the ID of a batch.
func (a *app) withBatch(ctx context.Context, text string, do func(ctx context.Context, store sluice.Store, id sluice.ID) error) error {
	id, err := parseID(text)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error { return do(ctx, store, id) })
}

// batchAct starts an operation on the jobs of a batch.
type batchAct func(context.Context, sluice.Store, sluice.ID, sluice.Act) (operation.Operation, error)

// batchOperateCommand is batchActCommand with the one flag that every act has.
func (a *app) batchOperateCommand(name, says string, do batchAct) *cobra.Command {
	var detach bool
	command := a.batchActCommand(name, says, &detach, do)
	command.Flags().BoolVar(&detach, "detach", false, "let upkeep do it, without waiting")
	return command
}

// batchActCommand makes a command that starts an operation on the jobs of a batch, and watches it unless detach is set.
func (a *app) batchActCommand(name, says string, detach *bool, do batchAct) *cobra.Command {
	return &cobra.Command{
		Use:     name + " ID",
		Short:   says,
		Example: fmt.Sprintf("  sluice batches %s %s --reason \"bank is closed\" --detach", name, exampleBatch),
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
			limited, cancel := context.WithTimeout(ctx, a.timeout)
			defer cancel()
			op, err := do(limited, store, id, a.act(""))
			if err != nil {
				return err
			}
			a.warnOfNoUpkeep(limited, store)
			if *detach {
				return a.printBegun(op)
			}
			a.note("operation %s began", op.ID)
			return a.watchOperation(ctx, store, op)
		},
	}
}
