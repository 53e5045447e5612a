package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/tenancy"
)

// queueRow is a queue with its counts.
type queueRow struct {
	Name      string       `json:"name"`
	Paused    bool         `json:"paused"`
	Until     time.Time    `json:"paused_until,omitzero"`
	ChangedBy string       `json:"changed_by"`
	ChangedAt time.Time    `json:"changed_at"`
	Reason    string       `json:"reason,omitempty"`
	Depth     sluice.Depth `json:"depth"`
	// Plans are scheduled changes; Wrong says what is wrong with the stored settings.
	Scheduled []scheduledRow `json:"scheduled,omitempty"`
	Wrong     string         `json:"wrong,omitempty"`
	// Engine runs the queue's jobs; empty: workers do.
	Engine string `json:"engine,omitempty"`
	// MaxWaiting is the most waiting jobs; 0: no limit. Waiting is how many wait then, at most MaxWaiting.
	MaxWaiting int `json:"max_waiting,omitempty"`
	Waiting    int `json:"waiting,omitempty"`
}

func (a *app) queuesCommand() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:   "queues [QUEUE…]",
		Short: "List queues with their job counts",
		Long: fmt.Sprintf(`Lists queues and their jobs by state, counted up to %s. Arguments choose queues; a * stands for any
part of a name.`, draw.Count(sluice.DepthLimit)),
		Example: "  sluice queues\n  sluice queues 'mail.*' -o json",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, chosen []string) error {
			if err := checkChosen(chosen, limit); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				queues, err := a.chosenQueues(ctx, client, chosen, limit)
				if err != nil {
					return err
				}
				rows, err := queueRows(ctx, store, queues)
				if err != nil {
					return err
				}
				if len(rows) == 0 && a.output == "table" {
					a.note("no queues; `sluice enqueue QUEUE PAYLOAD` makes one")
					return nil
				}
				if err := printList(a, rows, func(q queueRow) string { return q.Name }, queueColumns()); err != nil || a.output != "table" {
					return err
				}
				for _, row := range rows {
					a.noteQueue(row)
				}
				return nil
			})
		},
	}
	flagLimit(command, &limit)
	command.AddCommand(a.queuesRmCommand(), a.queuesPolicyCommand())
	return command
}

func (a *app) queuesRmCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm QUEUE…",
		Short: "Delete empty queues",
		Long: `Deletes queues without unfinished jobs, history, open runs of cancelled jobs and unfinished
operations. Other queues stay, and the answer says what they hold. The first job that names a
deleted queue creates it again, with default settings, unless queues must be declared: see "sluice
queues policy".

The queue's settings, scheduled changes, tenant limits and alert rules go too. Its audit,
statistics, SQL grants, and keys held for ever or for a window stay.`,
		Example: "  sluice queues rm mail.old --reason \"replaced by mail\"",
		Args:    arguments(1, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				var failed []error
				for _, name := range queues {
					if err := client.DeleteQueue(ctx, name, a.act("")); err != nil {
						failed = append(failed, err)
						continue
					}
					a.note("%s is deleted", name)
				}
				return errors.Join(failed...)
			})
		},
	}
}

// noteQueue prints what a table has no room for.
func (a *app) noteQueue(q queueRow) {
	for _, change := range q.Scheduled {
		a.note("%s: %s", q.Name, change.note())
	}
	if q.Wrong != "" {
		a.note("%s: warning: %s", q.Name, q.Wrong)
	}
}

// flagLimit adds --limit for queues.
func flagLimit(command *cobra.Command, limit *int) {
	command.Flags().IntVar(limit, "limit", 200, "most queues, the first by name")
}

// checkChosen refuses patterns and limits that can choose no queue.
func checkChosen(patterns []string, limit int) error {
	if limit < 1 {
		return usagef("--limit %d is not 1 or more", limit)
	}
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return usagef("queue %q: %w", pattern, err)
		}
	}
	return nil
}

// chosenQueues returns the first queues that match any pattern, or all, and notes if there are more. A pattern without
// a match is an error.
func (a *app) chosenQueues(ctx context.Context, client *sluice.Client, patterns []string, limit int) ([]sluice.Queue, error) {
	queues, more, err := someQueues(ctx, client, patterns, limit)
	if err != nil {
		return nil, err
	}
	if more {
		a.note("there are more queues than these %d: name some, or raise --limit", limit)
		return queues, nil
	}
	for _, pattern := range patterns {
		if !slices.ContainsFunc(queues, func(q sluice.Queue) bool { return matchesAny(q.Name, []string{pattern}) }) {
			return nil, *noQueue(pattern)
		}
	}
	return queues, nil
}

// someQueues returns the first queues that match any pattern, or all, and whether there are more.
func someQueues(ctx context.Context, client *sluice.Client, patterns []string, limit int) (queues []sluice.Queue, more bool, err error) {
	page := sluice.QueueFilter{Limit: 1000}
	if len(patterns) > 0 && !strings.ContainsAny(strings.Join(patterns, ""), `*?[\`) {
		page.Names = patterns
	}
	for {
		found, err := client.Queues(ctx, page)
		if err != nil {
			return nil, false, err
		}
		for _, q := range found {
			if !matchesAny(q.Name, patterns) {
				continue
			}
			if len(queues) == limit {
				return queues, true, nil
			}
			queues = append(queues, q)
		}
		if len(found) < page.Limit {
			return queues, false, nil
		}
		page.After = found[len(found)-1].Name
	}
}

func matchesAny(name string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

func queueRows(ctx context.Context, store sluice.Store, queues []sluice.Queue) ([]queueRow, error) {
	var rows []queueRow
	for _, q := range queues {
		depth, err := store.Depth(ctx, q.Name, sluice.DepthLimit)
		if err != nil {
			return nil, err
		}
		row := queueRow{
			q.Name, q.Settings.PausedAt(q.Now), q.Settings.PausedUntil, q.ChangedBy, q.ChangedAt, q.Reason, depth,
			scheduledRows([]sluice.Queue{q}), q.Wrong, q.Settings.Engine, 0, 0,
		}
		level, err := pressure.Of(ctx, store, q)
		if err != nil {
			return nil, err
		}
		row.MaxWaiting, row.Waiting = level.Limit, level.Waiting
		if row.Paused {
			by, err := explain.PausedBy(ctx, store, q)
			if err != nil {
				return nil, err
			}
			row.ChangedBy, row.ChangedAt, row.Reason = by.Actor, by.At, by.Reason
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func queueColumns() []column[queueRow] {
	return []column[queueRow]{
		{"QUEUE", func(q queueRow) string { return q.Name }, false},
		{"STATUS", queueStatus, false},
		{"READY", func(q queueRow) string { return bounded(q.Depth.Ready) }, true},
		{"SCHEDULED", func(q queueRow) string { return bounded(q.Depth.Scheduled) }, true},
		{"BLOCKED", func(q queueRow) string { return bounded(q.Depth.Blocked) }, true},
		{"CLAIMED", func(q queueRow) string { return bounded(q.Depth.Claimed) }, true},
		{"DISPATCHED", func(q queueRow) string { return bounded(q.Depth.Dispatched) }, true},
		{"UNCERTAIN", func(q queueRow) string { return bounded(q.Depth.Uncertain) }, true},
		{"DEAD", func(q queueRow) string { return bounded(q.Depth.Dead) }, true},
		{"OLDEST DUE", func(q queueRow) string { return ago(q.Depth.OldestDue) }, true},
	}
}

// full reports whether enqueues are refused.
func (q queueRow) full() bool { return pressure.Level{Waiting: q.Waiting, Limit: q.MaxWaiting}.Full() }

func queueStatus(q queueRow) string {
	if !q.Paused && q.Wrong != "" {
		return "open, with settings that are wrong"
	}
	if !q.Paused && q.full() {
		return "open, and full"
	}
	if !q.Paused {
		return "open"
	}
	text := "paused"
	if q.ChangedBy != "" {
		text += " by " + q.ChangedBy
	}
	if !q.Until.IsZero() {
		text += " until " + q.Until.Format(time.RFC3339)
	}
	if q.Reason != "" {
		text += ": " + q.Reason
	}
	return text
}

// bounded formats a count that may have stopped at its limit.
func bounded(n int) string {
	if n >= sluice.DepthLimit {
		return draw.Count(n) + "+"
	}
	return draw.Count(n)
}

func (a *app) pauseCommand() *cobra.Command {
	var during, wait time.Duration
	var tenant string
	command := &cobra.Command{
		Use:   "pause [QUEUE]",
		Short: "Stop claims of a queue, of a group's queues, or of a tenant",
		Long: `Running jobs go on. A group such as 'mail.*' stands for the queues that it has now. --wait waits until
the running jobs of the queue have ended too: exit code 0, nothing of it runs; 124, --wait passed and
the queue stays paused.`,
		Example: "  sluice pause payments --reason \"bank is down\"\n  sluice pause payments --for 30m --reason \"bank moves\"\n  sluice pause payments --wait 10m --reason \"bank moves\"\n  sluice pause payments --tenant acme\n  sluice pause 'mail.*' --reason \"mail server is down\"\n  sluice pause --tenant acme --for 1h",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := queueOrTenant(args, tenant); err != nil {
				return err
			}
			if wait > 0 && (tenant != "" || sluice.IsGroup(args[0])) {
				return usagef("--wait goes with one queue")
			}
			err := a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				if tenant != "" {
					return a.pauseTenant(ctx, store, args, tenant, during)
				}
				return a.eachQueue(ctx, client, args[0], func(queue string) error { return a.pauseQueue(ctx, client, queue, during) })
			})
			if err != nil || wait == 0 {
				return err
			}
			return a.awaitNothingRuns(command.Context(), args[0], wait)
		},
	}
	command.Flags().Var(duration{&during}, "for", "resume after this time, such as 30m")
	command.Flags().StringVar(&tenant, "tenant", "", "only this tenant, in the queue or in every queue")
	command.Flags().Var(duration{&wait}, "wait", "wait until no job of the queue runs, at most this long")
	return command
}

// awaitNothingRuns waits until no job of a queue is in flight.
func (a *app) awaitNothingRuns(ctx context.Context, queue string, wait time.Duration) error {
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	left, late, err := a.awaitQuiet(ctx, time.Now().Add(wait), "", func() (string, error) {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		depth, err := store.Depth(ctx, queue, sluice.DepthLimit)
		if err != nil || depth.InFlight() == 0 {
			return "", err
		}
		return fmt.Sprintf("%s of %s in flight", jobs(depth.InFlight()), queue), nil
	})
	switch {
	case err != nil:
		return err
	case late:
		return codedError{fmt.Errorf("after %s, %s", wait, left), exitTimeout, "run it again to wait longer; the queue stays paused, and `sluice holders --jobs` shows who runs them"}
	}
	a.note("nothing of %s runs", queue)
	return nil
}

// pauseQueue pauses a queue, for a while if during is not 0.
func (a *app) pauseQueue(ctx context.Context, client *sluice.Client, queue string, during time.Duration) error {
	if during == 0 {
		err := client.Pause(ctx, queue, a.act(""))
		if err == nil {
			a.note("paused %s; open it with `sluice resume %s`", queue, queue)
		}
		return err
	}
	until, err := client.PauseFor(ctx, queue, during, a.act(""))
	if err == nil {
		a.note("paused %s until %s; open it before that with `sluice resume %s`", queue, until.Format(time.RFC3339), queue)
	}
	return err
}

func (a *app) resumeCommand() *cobra.Command {
	var tenant string
	command := &cobra.Command{
		Use:     "resume [QUEUE]",
		Short:   "Resume a paused queue or tenant",
		Example: "  sluice resume payments --reason \"bank is back\"\n  sluice resume payments --tenant acme",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := queueOrTenant(args, tenant); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				if tenant != "" {
					err := tenancy.Resume(ctx, store, onlyQueue(args), tenant, a.act(""))
					if errors.Is(err, sluice.ErrNotFound) {
						return codedError{err, exitNotFound, "look with `sluice tenants` where it is paused, and name that queue or none"}
					}
					if err != nil {
						return err
					}
					a.note("resumed tenant %s", tenant)
					return nil
				}
				return a.eachQueue(ctx, client, args[0], func(queue string) error {
					err := client.Resume(ctx, queue, a.act(""))
					if err == nil {
						a.note("resumed %s", queue)
					}
					return err
				})
			})
		},
	}
	command.Flags().StringVar(&tenant, "tenant", "", "only this tenant, in the queue or in every queue")
	return command
}
