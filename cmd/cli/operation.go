package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/search"
)

// operateOnAll starts an operation on all matching jobs.
func (a *app) operateOnAll(ctx context.Context, s *selection, v verb) error {
	filter, err := s.filter.parse()
	if err != nil {
		return err
	}
	if len(filter.States) == 0 {
		filter.States = v.states
	}
	return a.operate(ctx, s, filter, v.name)
}

// checkStates refuses states of --state on which the act cannot act, in the words of an operation.
func (v verb) checkStates(command *cobra.Command, states []sluice.State) error {
	for _, state := range states {
		if slices.Contains(v.states, state) || slices.Contains(v.also, state) {
			continue
		}
		act := command.Name()
		if changed(command, "undo") {
			act += " --undo"
		}
		return &sluice.InvalidError{Field: "states", Rule: fmt.Sprintf("a job that is %s cannot be acted on with %s", state, act)}
	}
	return nil
}

// samples is how many jobs a dry run shows.
const samples = 5

// preview is the output of a dry run.
type preview struct {
	search.Found
	DryRun bool `json:"dry_run"`
}

// operate starts an operation and watches it, or shows what it would do.
func (a *app) operate(ctx context.Context, s *selection, filter sluice.JobFilter, name string) error {
	if s.filter.limit < 0 {
		return usagef("--limit %d is negative", s.filter.limit)
	}
	query, err := s.query.query(filter)
	if err != nil {
		return err
	}
	op := operation.Operation{
		Kind: s.kind, Query: query, DueAt: s.due, Edit: s.edit, Limit: s.filter.limit, Rate: s.pace.rate, Canary: s.pace.canary, StopIfFailed: float64(s.pace.stop),
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	found, err := operation.Preview(limited, store, op, samples)
	if err != nil {
		return err
	}
	if op.Expected, op.ExpectedMore = found.Matched, found.More; s.dryRun {
		return a.printPreview(found, op, name)
	}
	if found.Matched == 0 && !found.More {
		return a.printActed(verb{name: name}, acted{})
	}
	if op, err = operation.Start(limited, store, op, a.act("requested with `sluice`")); err != nil {
		return err
	}
	a.warnOfNoUpkeep(limited, store)
	if s.pace.detach {
		return a.printBegun(op)
	}
	a.note("operation %s began", op.ID)
	return a.watchOperation(ctx, store, op)
}

func (a *app) printPreview(found search.Found, op operation.Operation, name string) error {
	return a.printOne(preview{found, true}, func() error {
		matched := found.Matched
		if op.Limit > 0 {
			matched = min(matched, op.Limit)
		}
		text := jobs(matched) + " would be " + name
		if found.More {
			text = "at least " + text + ": looking stopped after " + draw.Count(found.Compared)
		}
		if states := draw.States(found.States); states != "" {
			text += " (" + states + ")"
		}
		if !op.Rate.IsZero() {
			text += fmt.Sprintf(", in about %s at %s", draw.Duration(time.Duration(float64(matched)/op.Rate.PerSecond()*float64(time.Second))), op.Rate)
		}
		if _, err := fmt.Fprintln(a.stdout, text); err != nil || len(found.Jobs) == 0 {
			return err
		}
		return printTable(a, found.Jobs, deadColumns())
	})
}

// printBegun prints an operation that runs unwatched.
func (a *app) printBegun(op operation.Operation) error {
	return a.printNamed(op, op.ID.String(), func() error {
		_, err := fmt.Fprintf(a.stdout, "operation %s began; watch it with `sluice operations watch %s`\n", op.ID, op.ID)
		return err
	})
}

// upkeepGone is the silence after which upkeep counts as absent: 3 heartbeats.
const upkeepGone = 15 * time.Second

// warnOfNoUpkeep says what to start if nobody carries out operations.
func (a *app) warnOfNoUpkeep(ctx context.Context, store sluice.Store) {
	holders, err := presence.Holders(ctx, store)
	if err != nil {
		return // the next call reports it
	}
	for _, h := range holders {
		if h.Role == presence.RoleUpkeep && time.Since(h.Seen) < upkeepGone {
			return
		}
	}
	a.note("nobody does upkeep, so that nothing happens until somebody does: start `sluice upkeep`")
}

// watchInterval is how often a watched operation is read.
const watchInterval = 250 * time.Millisecond

// watchOperation shows an operation's progress until it ends.
func (a *app) watchOperation(ctx context.Context, store sluice.Store, op operation.Operation) error {
	line := a.newProgress("", 0)
	for !op.State.Ended() || op.EndedAt.IsZero() {
		line.say(operationLine(op))
		select {
		case <-ctx.Done():
		case <-time.After(watchInterval):
		}
		if ctx.Err() != nil {
			line.leave()
			a.note("it goes on without this command\n  watch: sluice operations watch %s\n  pause: sluice operations pause %s\n  stop:  sluice operations stop %s", op.ID, op.ID, op.ID)
			return silentExit(exitInterrupted)
		}
		next, err := a.lookAtOperation(ctx, store, op.ID)
		if err != nil && ctx.Err() == nil {
			line.leave()
			return err
		}
		if err == nil {
			op = next
		}
	}
	line.leave()
	return a.printEnded(op)
}

func (a *app) lookAtOperation(ctx context.Context, store sluice.Store, id sluice.ID) (operation.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return operation.Read(ctx, store, id)
}

// doneWords name what operations did to jobs.
var doneWords = map[operation.Kind]string{
	operation.KindRequeue: "requeued", operation.KindCancel: "cancelled", operation.KindReschedule: "rescheduled", operation.KindDelete: "deleted",
	operation.KindHold: "held", operation.KindRelease: "released", operation.KindBackfill: "backfilled", operation.KindEdit: "edited",
}

func doneWord(kind operation.Kind) string {
	if word, known := doneWords[kind]; known {
		return word
	}
	return string(kind)
}

// operationLine formats an operation's progress; the end of the line matters least.
func operationLine(op operation.Operation) string {
	word := doneWord(op.Kind)
	parts := []string{strings.ToUpper(word[:1]) + word[1:] + " " + draw.Count(op.Done)}
	if total, known := op.Total(); known && total > 0 {
		parts[0] = strings.ToUpper(word[:1]) + word[1:] + " " + shareBar(total-op.Left(), total)
		parts = append(parts, draw.Count(total-op.Left())+"/"+draw.Count(total))
	}
	switch {
	case op.State == operation.StatePaused:
		parts = append(parts, "paused")
	case op.OnProbation():
		parts = append(parts, fmt.Sprintf("canary %d/%d ended", op.WatchedEnded, op.Canary))
	case !op.Rate.IsZero():
		parts = append(parts, op.Rate.String())
	}
	if op.WatchedFailed > 0 {
		parts = append(parts, fmt.Sprintf("failed again %s of %s watched", draw.Count(op.WatchedFailed), draw.Count(op.WatchedEnded)))
	}
	if eta, known := op.ETA(); known && eta >= time.Second {
		parts = append(parts, "ETA "+draw.Duration(eta))
	}
	return strings.Join(append(parts, refusals(op)...), "  ")
}

// refusals formats how many jobs were not acted on.
func refusals(op operation.Operation) (parts []string) {
	if op.Skipped > 0 {
		parts = append(parts, "skipped "+draw.Count(op.Skipped))
	}
	if op.Failed > 0 {
		parts = append(parts, "refused "+draw.Count(op.Failed))
	}
	return parts
}

// printEnded prints an operation's result and returns the exit code.
func (a *app) printEnded(op operation.Operation) error {
	err := a.printNamed(op, op.ID.String(), func() error {
		text := string(op.State) + ": " + atLeast(op) + doneWord(op.Kind) + " " + jobs(op.Done)
		for _, part := range refusals(op) {
			text += ", " + part
		}
		if op.WatchedEnded > 0 {
			text += fmt.Sprintf("; %s watched, %s failed again", draw.Count(op.WatchedEnded), draw.Count(op.WatchedFailed))
		}
		if op.Why != "" {
			text += "; " + oneLine(op.Why)
		}
		_, err := fmt.Fprintf(a.stdout, "%s (operation %s)\n", text, op.ID)
		return err
	})
	switch {
	case err != nil:
		return err
	case op.State == operation.StateDone && op.Failed == 0:
		return nil
	case op.State == operation.StateFailed && op.Done == 0:
		return silentExit(exitFailed)
	}
	return silentExit(exitPartly)
}

func atLeast(op operation.Operation) string {
	if op.AtLeast {
		return "at least "
	}
	return ""
}
