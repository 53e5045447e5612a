package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// selection chooses the jobs of an act: ids, or every match of a filter.
type selection struct {
	filter filterFlags
	query  queryFlags
	pace   paceFlags
	all    bool
	dryRun bool

	anyState bool           // adds --state to the filter
	kind     operation.Kind // of the equivalent operation; empty: none
	due      time.Time      // of a reschedule
	edit     *operation.Edit
}

// filterNames are the flags that filter the jobs of --all.
var filterNames = append([]string{"queue", "tenant", "key", "state", "label", "batch", "min-attempts", "min-recoveries"}, queryNames...)

func (s *selection) add(command *cobra.Command) {
	s.filter.add(command, 0)
	if s.anyState {
		s.filter.addStates(command)
	}
	s.query.add(command)
	if s.kind != "" {
		s.pace.add(command, s.kind)
	}
	command.Flags().BoolVar(&s.all, "all", false, "act on all matches of the filter")
	command.Flags().BoolVar(&s.dryRun, "dry-run", false, "with --all: count only, act on none")
	for _, name := range slices.Concat(filterNames, paceNames) {
		if flag := command.Flags().Lookup(name); flag != nil {
			flag.Usage = "with --all: " + flag.Usage
		}
	}
	command.Flags().Lookup("limit").Usage = "with --all: most jobs; 0: all"
}

// check refuses flags that would have no effect. Otherwise a person who names a filter or a dry run could act on other
// jobs.
func (s *selection) check(command *cobra.Command, args []string) error {
	if s.all && len(args) > 0 {
		return usagef("give either ids or --all, not both")
	}
	for _, name := range slices.Concat(filterNames, paceNames, []string{"limit", "dry-run"}) {
		if flag := command.Flags().Lookup(name); !s.all && flag != nil && flag.Changed {
			return usagef("--%s only goes with --all", name)
		}
	}
	if s.filter.limit < 0 {
		return usagef("--limit %d is negative", s.filter.limit)
	}
	if s.all && !s.dryRun && !changed(command, filterNames...) {
		return usagef("--all without a filter would act on every job of the store; name a --queue, or look with --dry-run")
	}
	return nil
}

// changed reports whether any of these flags was given.
func changed(command *cobra.Command, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		flag := command.Flags().Lookup(name)
		return flag != nil && flag.Changed
	})
}

// acted is the result of an act. Matched jobs that were not done had changed in between.
type acted struct {
	Matched int  `json:"matched"`
	Done    int  `json:"done"`
	DryRun  bool `json:"dry_run,omitempty"`
}

func (a *app) printActed(v verb, what acted) error {
	return a.printOne(what, func() error {
		text := fmt.Sprintf("%s %s of %s\n", v.name, draw.Count(what.Done), jobs(what.Matched))
		if what.DryRun {
			text = jobs(what.Matched) + " would be " + v.name + "\n"
		}
		_, err := fmt.Fprint(a.stdout, text)
		return err
	})
}

// verb is an act on a batch of jobs.
type verb struct {
	name   string // as in `cancelled 3 jobs`
	states []sluice.State
	also   []sluice.State // on which it can act too, if --state names them
	do     func(ctx context.Context, client *sluice.Client, ids []sluice.ID) error
	on     func(ctx context.Context, store sluice.Store, ids []sluice.ID) error // instead of do, for acts of a feature's port
	// left leaves out matching jobs on which nothing is left to do. Nil: there are none.
	left func(ctx context.Context, store sluice.Store, ids []sluice.ID) ([]sluice.ID, error)
}

// act acts on a batch of jobs.
func (v verb) act(ctx context.Context, store sluice.Store, client *sluice.Client, ids []sluice.ID) error {
	if v.on != nil {
		return v.on(ctx, store, ids)
	}
	return v.do(ctx, client, ids)
}

// actCommand makes a command that acts on jobs.
func (a *app) actCommand(command *cobra.Command, s *selection, v func() (verb, error)) *cobra.Command {
	s.add(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		doing, err := v()
		if err != nil {
			return err
		}
		if err := s.check(command, args); err != nil {
			return err
		}
		if s.all && changed(command, paceNames...) {
			return a.operateOnAll(command.Context(), s, doing)
		}
		if s.all {
			return a.actOnAll(command, s, doing)
		}
		ids, err := a.parseIDs(args)
		if err != nil {
			return err
		}
		return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
			return a.reportAct(command, doing, len(ids), doing.act(ctx, store, client, ids))
		})
	}
	return command
}

// parseIDs reads job ids from the arguments, each once. The argument - reads ids from standard input.
func (a *app) parseIDs(args []string) ([]sluice.ID, error) {
	if len(args) == 0 {
		return nil, usagef("no job is named: give ids, - for standard input, or --all with a filter")
	}
	var ids []sluice.ID
	known := make(map[sluice.ID]bool)
	add := func(text string) error {
		id, err := parseID(text)
		if err == nil && !known[id] {
			known[id] = true
			ids = append(ids, id)
		}
		return err
	}
	for _, text := range args {
		if text != "-" {
			if err := add(text); err != nil {
				return nil, err
			}
			continue
		}
		lines := bufio.NewScanner(a.stdin)
		for lines.Scan() {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				if err := add(line); err != nil {
					return nil, err
				}
			}
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// reportAct prints the result of an act on named jobs.
func (a *app) reportAct(command *cobra.Command, v verb, total int, err error) error {
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		return err
	}
	failed := 0
	if batch != nil {
		failed = len(batch.Failed)
		if total == 1 {
			return batch.Failed[0]
		}
		for _, err := range batch.Unwrap() {
			fmt.Fprintln(a.stderr, err)
		}
	}
	if err := a.printActed(v, acted{Matched: total, Done: total - failed}); err != nil {
		return err
	}
	switch failed {
	case 0:
		return nil
	case total:
		code, _ := diagnose(command, batch.Unwrap()[0])
		return silentExit(code)
	}
	return silentExit(exitPartly)
}

const actBatch = 1000

// actOnAll acts on all matching jobs, page by page. Jobs that change in between are skipped.
func (a *app) actOnAll(command *cobra.Command, s *selection, v verb) error {
	ctx := command.Context()
	filter, err := s.filter.parse()
	if err != nil {
		return err
	}
	if err := v.checkStates(command, filter.States); err != nil {
		return err
	}
	if len(filter.States) == 0 {
		filter.States = v.states
	}
	query, err := s.query.query(filter)
	if err != nil {
		return err
	}
	left := filter.Limit
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	client := a.client(store)
	bar := a.newProgress(strings.ToUpper(v.name[:1])+v.name[1:], 0)
	matched, done := 0, 0
	next := pagesOf(store, client, filter, query)
	for {
		ids, last, err := next(ctx)
		if err != nil {
			return err
		}
		if v.left != nil {
			if ids, err = v.left(ctx, store, ids); err != nil {
				return err
			}
		}
		if left > 0 {
			ids = ids[:min(len(ids), left-matched)]
		}
		matched += len(ids)
		if !s.dryRun {
			moved, err := a.actOnPage(ctx, store, client, v, ids)
			if err != nil {
				a.note("%s %s before it failed; run it again for the rest", v.name, jobs(done))
				return err
			}
			done += moved
			bar.set(done, "")
		}
		if last || left > 0 && matched >= left {
			break
		}
	}
	bar.leave()
	if matched == 0 {
		if unknown, _ := firstUnknown(ctx, client, filter.Queue); unknown != nil { // an error concerns the note alone
			a.note("no jobs: %v; %s", unknown, unknown.todo)
		}
	}
	return a.printActed(v, acted{Matched: matched, Done: done, DryRun: s.dryRun})
}

// pagesOf returns a reader of the jobs that a filter and a query choose, page by page.
func pagesOf(store sluice.Store, client *sluice.Client, filter sluice.JobFilter, query search.Query) func(context.Context) (ids []sluice.ID, last bool, err error) {
	if query.Held || len(query.Terms) > 0 || sluice.IsGroup(filter.Queue) { // a store lists jobs of one queue or of all, and does not know of holds
		var place search.Place
		return func(ctx context.Context) ([]sluice.ID, bool, error) {
			page, err := search.ReadPage(ctx, store, query, place, actBatch)
			place = page.Next
			return matching(page.Jobs, query), place.End, err
		}
	}
	filter.Limit = actBatch
	return func(ctx context.Context) ([]sluice.ID, bool, error) {
		page, err := client.Jobs(ctx, filter)
		filter.Before, filter.Cursor = page.Next, page.Cursor
		return matching(page.Jobs, query), page.Next.IsZero(), err
	}
}

// matching returns the ids of the jobs that match a query.
func matching(jobs []sluice.Job, query search.Query) (ids []sluice.ID) {
	for _, job := range jobs {
		if query.Matches(job) {
			ids = append(ids, job.ID)
		}
	}
	return ids
}

func (a *app) actOnPage(ctx context.Context, store sluice.Store, client *sluice.Client, v verb, ids []sluice.ID) (int, error) {
	err := v.act(ctx, store, client, ids)
	var batch *sluice.BatchError
	if errors.As(err, &batch) {
		return len(ids) - len(batch.Failed), nil
	}
	if err != nil {
		return 0, err
	}
	return len(ids), nil
}

func (a *app) cancelCommand() *cobra.Command {
	return a.actCommand(&cobra.Command{
		Use:   "cancel ID…|-",
		Short: "Cancel unfinished jobs; running handlers see their context end",
		Example: `  sluice cancel 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "customer left"
  sluice cancel --all --queue mail --tenant acme --dry-run
  sluice jobs --tenant acme --state queued -o ids | sluice cancel -`,
	}, &selection{anyState: true, kind: operation.KindCancel}, func() (verb, error) {
		return verb{name: "cancelled", states: []sluice.State{sluice.StateQueued, sluice.StateClaimed, sluice.StateDispatched}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.Cancel(ctx, ids, a.act(""))
		}}, nil
	})
}

func (a *app) requeueCommand() *cobra.Command {
	var beside, undo bool
	command := &cobra.Command{
		Use:   "requeue ID…|-",
		Short: "Requeue dead, cancelled or uncertain jobs, due now",
		Long: `Starts a new generation: due now, fresh counts, history kept. --all requeues dead jobs, unless
--state names others. A cancelled job waits until its run, which may still be open at its engine,
has ended: see "sluice why" and "sluice runs terminate". With --beside-open-run it does not wait,
so two runs may be open; the audit records who and why. Uncertain jobs do not wait: check their
runs first.

--undo makes jobs that still wait, never claimed since, dead or cancelled again, with their former
error and end. Others, and formerly uncertain jobs, are refused unchanged.`,
		Example: `  sluice requeue 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "bank is back"
  sluice requeue --all --queue payments --state cancelled
  sluice requeue --all --queue payments --rate 20/s --canary 10 --reason "bank is back"`,
	}
	command.Flags().BoolVar(&beside, "beside-open-run", false, "do not wait for runs that may still be open; needs --reason")
	command.Flags().BoolVar(&undo, "undo", false, "undo the requeue of jobs that still wait, never claimed since")
	command = a.requeuing(command, &selection{anyState: true}, &beside, &undo)
	command.Example += "\n  sluice jobs --queue payments --state queued -o ids | sluice requeue --undo - --reason \"the wrong group\""
	return command
}

func (a *app) resolveCommand() *cobra.Command {
	var completed, failed bool
	command := &cobra.Command{
		Use:   "resolve ID…|- --reason WHY",
		Short: "Record the outcome of uncertain jobs",
		Long: `Ends uncertain jobs, after you checked what their runs did, for example in the bank's books.
--completed completes them; --failed makes dead letters, which can be requeued. The audit records
who and why. Look first with "sluice why" and "sluice ask-engine".`,
		Example: `  sluice resolve 01a1fb72-1dea-7abc-8fc6-99e4817522bb --completed --reason "it is in the bank's books"
  sluice resolve 01a1fb72-1dea-7abc-8fc6-99e4817522bb --failed --reason "the bank has no such payment"
  sluice resolve --all --queue payment --completed --dry-run`,
	}
	command.Flags().BoolVar(&completed, "completed", false, "the work was done")
	command.Flags().BoolVar(&failed, "failed", false, "the work was not done")
	return a.actCommand(command, &selection{}, func() (verb, error) {
		if completed == failed {
			return verb{}, usagef("say what became of the runs: either --completed or --failed")
		}
		outcome := sluice.StateCompleted
		if failed {
			outcome = sluice.StateDead
		}
		return verb{name: "resolved", states: []sluice.State{sluice.StateUncertain}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.Resolve(ctx, ids, outcome, a.act(""))
		}}, nil
	})
}

func (a *app) requeuing(command *cobra.Command, s *selection, beside, undo *bool) *cobra.Command {
	s.kind = operation.KindRequeue
	return a.actCommand(command, s, func() (verb, error) {
		switch {
		case *undo && *beside:
			return verb{}, usagef("--undo starts nothing; it does not go with --beside-open-run")
		case *undo && changed(command, paceNames...):
			return verb{}, usagef("--undo acts at once; it does not go with --%s", strings.Join(paceNames, ", --"))
		case *undo:
			return verb{name: "put back", states: []sluice.State{sluice.StateQueued}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
				return c.UndoRequeue(ctx, ids, a.act("requested with `sluice requeue --undo`"))
			}}, nil
		case *beside && a.reason == "":
			return verb{}, usagef("--beside-open-run lets two runs of one job be open at once; say why, with --reason")
		case *beside && s.all:
			return verb{}, usagef("--beside-open-run is decided job by job; name them instead of --all")
		}
		return verb{name: "requeued", states: []sluice.State{sluice.StateDead}, also: []sluice.State{sluice.StateCancelled, sluice.StateUncertain}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			act := a.act("requested with `sluice requeue`")
			act.BesideOpenRun = *beside
			return c.Requeue(ctx, ids, act)
		}}, nil
	})
}

// retryCommand makes waiting jobs due now, and requeues finished ones.
func (a *app) retryCommand() *cobra.Command {
	return a.actCommand(&cobra.Command{
		Use:   "retry ID…|-",
		Short: "Retry jobs now: in backoff, dead or cancelled",
		Long: `Makes waiting jobs due now, and requeues dead, cancelled and uncertain ones. --all retries dead
jobs, unless --state names others.`,
		Example: `  sluice retry 01a1fb72-1dea-7abc-8fc6-99e4817522bb
  sluice retry --all --queue payments --state queued,dead --limit 10`,
	}, &selection{anyState: true, kind: operation.KindRequeue}, func() (verb, error) {
		also := []sluice.State{sluice.StateQueued, sluice.StateCancelled, sluice.StateUncertain}
		return verb{name: "retried", states: []sluice.State{sluice.StateDead}, also: also, do: a.retry}, nil
	})
}

func (a *app) retry(ctx context.Context, client *sluice.Client, ids []sluice.ID) error {
	return acting.Retry(ctx, client, ids, a.act("requested with `sluice retry`"))
}

func (a *app) runNowCommand() *cobra.Command {
	return a.actCommand(&cobra.Command{
		Use:     "run-now ID…|-",
		Short:   "Make waiting jobs due now",
		Example: "  sluice run-now 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice run-now --all --queue mail --tenant acme",
	}, &selection{kind: operation.KindReschedule}, func() (verb, error) {
		return verb{name: "made due", states: []sluice.State{sluice.StateQueued}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.RunNow(ctx, ids, a.act(""))
		}}, nil
	})
}

func (a *app) rescheduleCommand() *cobra.Command {
	var at, delay string
	var undo bool
	command := &cobra.Command{
		Use:     "reschedule ID…|- --at INSTANT|--delay DURATION|--undo",
		Short:   "Change when waiting jobs are due",
		Example: "  sluice reschedule 01a1fb72-1dea-7abc-8fc6-99e4817522bb --delay 2h\n  sluice reschedule --all --queue mail --at 2026-12-01T16:00:00Z",
	}
	command.Flags().StringVar(&at, "at", "", "the new due time, such as 2026-12-01T16:00:00Z")
	command.Flags().StringVar(&delay, "delay", "", "the new due time from now, such as 90m or 2d")
	command.Flags().BoolVar(&undo, "undo", false, "restore the due time before the last reschedule, if neither claimed nor put off since")
	s := &selection{kind: operation.KindReschedule}
	return a.actCommand(command, s, func() (verb, error) {
		if undo {
			return a.undoing(command, at+delay)
		}
		due, err := parseTime("--at", at)
		if err != nil {
			return verb{}, err
		}
		if (at == "") == (delay == "") {
			return verb{}, usagef("give either --at, --delay or --undo")
		}
		if delay != "" {
			wait, err := jobline.ParseDuration(delay)
			if err != nil {
				return verb{}, usagef("--delay %q: %w", delay, err)
			}
			due = time.Now().Add(wait)
		}
		s.due = due
		return verb{name: "rescheduled", states: []sluice.State{sluice.StateQueued}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.Reschedule(ctx, ids, due, a.act(""))
		}}, nil
	})
}

// undoing is the verb of `reschedule --undo`, which takes neither an instant nor pace flags.
func (a *app) undoing(command *cobra.Command, instant string) (verb, error) {
	if instant != "" {
		return verb{}, usagef("give either --at, --delay or --undo")
	}
	if changed(command, paceNames...) {
		return verb{}, usagef("--undo acts at once; it does not go with --%s", strings.Join(paceNames, ", --"))
	}
	return verb{name: "rescheduled", states: []sluice.State{sluice.StateQueued}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
		return c.UndoReschedule(ctx, ids, a.act("undo"))
	}}, nil
}
