package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // schedules name time zones, which some machines lack

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/presence"
)

func (a *app) settingsScheduleCommand() *cobra.Command {
	var window changes.Window
	var yes *bool
	command := &cobra.Command{
		Use:   "schedule QUEUE SETTING=VALUE…",
		Short: "Apply settings during daily windows",
		Long: `Applies settings during a window of each day, or some days. Upkeep checks every second, applies
them at the opening, and restores the former ones at the end; both are audited. Upkeep that starts
later corrects the settings at once. Changes made during the window stay. Windows follow their time
zone, including summer time, and may pass midnight. A rate twice what the queue's engine took in
the last day needs consent, as in "sluice settings set".`,
		Example: "  sluice settings schedule payments rate=200/s --from 16:00 --to 18:00 --tz Europe/Berlin --reason \"the bank's busy hours\"\n" +
			"  sluice settings schedule reports paused=true --from 22:00 --to 06:00 --tz UTC --days mon,tue,wed,thu,fri",
		Args: arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			if window.From == "" || window.To == "" || window.Zone == "" {
				return usagef("--from, --to and --tz must be given, such as --from 16:00 --to 18:00 --tz Europe/Berlin")
			}
			set, err := namedValues(args[1:])
			if err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				if err := a.guardRate(ctx, store, client, args[0], args[1:], *yes); err != nil {
					return err
				}
				queue, err := changes.Schedule(ctx, client, args[0], window, set, a.act(""))
				if err != nil {
					return err
				}
				rows, err := rowsOfScheduled(queue)
				if err != nil {
					return err
				}
				return a.printScheduled(rows[len(rows)-1:])
			})
		},
	}
	yes = addYes(command)
	flags := command.Flags()
	flags.StringVar(&window.From, "from", "", "when the window opens, such as 16:00")
	flags.StringVar(&window.To, "to", "", "when it closes, such as 18:00; 24:00 is the end of the day")
	flags.StringVar(&window.Zone, "tz", "", "time zone, such as Europe/Berlin or UTC")
	flags.StringSliceVar(&window.Days, "days", nil, "only windows that open on: mon, tue, wed, thu, fri, sat, sun")
	return command
}

// namedValues reads SETTING=VALUE pairs.
func namedValues(pairs []string) (map[string]string, error) {
	set := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, err := cutSetting(pair)
		if err != nil {
			return nil, err
		}
		if _, again := set[name]; again {
			return nil, usagef("%s is given twice", name)
		}
		set[name] = value
	}
	return set, nil
}

// scheduledRow is a scheduled change of a queue. One without an ID stands for all of a queue that cannot be read.
type scheduledRow struct {
	Queue string `json:"queue"`
	changes.Change
	Next  time.Time `json:"next,omitzero"`
	Wrong string    `json:"wrong,omitempty"`

	now time.Time
}

// rowsOfScheduled returns the scheduled changes of a queue, in the order in which they were made.
func rowsOfScheduled(queue sluice.Queue) ([]scheduledRow, error) {
	scheduled, err := changes.List(queue)
	rows := make([]scheduledRow, len(scheduled))
	for i, change := range scheduled {
		rows[i] = rowOfScheduled(queue, change)
	}
	return rows, err
}

func rowOfScheduled(queue sluice.Queue, change changes.Change) scheduledRow {
	row := scheduledRow{Queue: queue.Name, Change: change, now: queue.Now}
	next, err := change.Next(queue.Now)
	if err != nil {
		row.Wrong = err.Error()
	}
	row.Next = next
	return row
}

func scheduledRows(queues []sluice.Queue) []scheduledRow {
	var rows []scheduledRow
	for _, q := range queues {
		planned, err := rowsOfScheduled(q)
		if err != nil {
			planned = []scheduledRow{{Queue: q.Name, Wrong: err.Error()}}
		}
		rows = append(rows, planned...)
	}
	slices.SortStableFunc(rows, func(a, b scheduledRow) int { return a.Next.Compare(b.Next) })
	return rows
}

// late reports whether upkeep should have applied the change by now.
func (r scheduledRow) late() bool { return !r.Next.IsZero() && r.now.Sub(r.Next) > presence.Silence }

func (r scheduledRow) status() string {
	switch {
	case r.Wrong != "":
		return r.Wrong
	case !r.Next.After(r.now):
		return "due: upkeep carries it out"
	case r.Window == nil:
		return "waits"
	case r.Open:
		return "open"
	}
	return "closed"
}

// what says what the change will do, "-" if it cannot be read.
func (r scheduledRow) what() string {
	if r.ID == 0 {
		return "-"
	}
	return r.String()
}

// next says when the change acts next, "-" if that is not known.
func (r scheduledRow) next() string {
	if r.Next.IsZero() {
		return "-"
	}
	return r.Next.UTC().Format(time.RFC3339)
}

// note describes the change in one line.
func (r scheduledRow) note() string {
	if r.ID == 0 {
		return "warning: " + r.Wrong
	}
	return fmt.Sprintf("scheduled change %d: %s (%s)", r.ID, r.Change, r.status())
}

func (a *app) printScheduled(rows []scheduledRow) error {
	return printList(a, rows, func(r scheduledRow) string { return strconv.FormatInt(r.ID, 10) }, []column[scheduledRow]{
		{"QUEUE", func(r scheduledRow) string { return r.Queue }, false},
		{"CHANGE", func(r scheduledRow) string { return strconv.FormatInt(r.ID, 10) }, true},
		{"WHAT", scheduledRow.what, false},
		{"STATUS", scheduledRow.status, false},
		{"NEXT", scheduledRow.next, false},
		{"BY", func(r scheduledRow) string { return orDash(r.MadeBy) }, false},
		{"REASON", func(r scheduledRow) string { return orDash(r.Reason) }, false},
	})
}

func (a *app) settingsScheduledCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "scheduled [QUEUE]",
		Short:   "List scheduled changes of settings",
		Long:    "Lists the windows of \"sluice settings schedule\" and the reverts of --revert-in, by their next change.",
		Example: "  sluice settings scheduled\n  sluice settings scheduled payments -o json",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				queues, err := client.Queues(ctx, sluice.QueueFilter{Groups: true})
				if err != nil {
					return err
				}
				if len(args) > 0 {
					queue, err := client.Queue(ctx, args[0])
					if err != nil {
						return err
					}
					queues = []sluice.Queue{queue}
				}
				rows := scheduledRows(queues)
				if len(rows) == 0 && a.output == "table" {
					a.note("no scheduled changes; `sluice settings schedule` makes one")
					return nil
				}
				return a.printScheduled(rows)
			})
		},
	}
}

func (a *app) settingsUnscheduleCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unschedule QUEUE CHANGE",
		Short:   "Remove a scheduled change",
		Long:    "Removes a scheduled change by its number. A change with a pending revert then stays.\nSettings of an open window are restored.",
		Example: "  sluice settings unschedule payments 7 --reason \"the bank is quicker now\"",
		Args:    arguments(2, 2),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usagef("%q is not the number of a scheduled change; `sluice settings scheduled %s` lists them", args[1], args[0])
			}
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				before, err := client.Queue(ctx, args[0])
				if err != nil {
					return err
				}
				after, err := changes.Cancel(ctx, client, args[0], id, a.act(""))
				if err != nil {
					return err
				}
				a.note("removed scheduled change %d of %s", id, args[0])
				return a.printChanges(before, after)
			})
		},
	}
}

// noteScheduled prints a queue's scheduled changes, and what is wrong with its settings.
func (a *app) noteScheduled(queue sluice.Queue) {
	for _, row := range scheduledRows([]sluice.Queue{queue}) {
		a.note("%s", row.note())
	}
	if queue.Wrong != "" {
		a.note("warning: %s", queue.Wrong)
	}
}

// scheduledBetween lists the scheduled changes that a change of a queue added and removed. Unreadable ones count as none
// before it: the change may have removed them.
func scheduledBetween(before, after sluice.Queue) ([]string, error) {
	scheduledBefore, _ := changes.List(before)
	scheduledAfter, err := changes.List(after)
	return scheduledChanges(scheduledBefore, scheduledAfter), err
}

// scheduledChanges lists the scheduled changes that a change added and removed.
func scheduledChanges(before, after []changes.Change) []string {
	var lines []string
	has := func(scheduled []changes.Change, id int64) bool {
		return slices.ContainsFunc(scheduled, func(p changes.Change) bool { return p.ID == id })
	}
	for _, p := range after {
		if !has(before, p.ID) {
			lines = append(lines, fmt.Sprintf("scheduled change %d: %s", p.ID, p))
		}
	}
	for _, p := range before {
		if !has(after, p.ID) {
			lines = append(lines, fmt.Sprintf("scheduled change %d removed: %s", p.ID, strings.TrimSpace(p.String())))
		}
	}
	return lines
}
