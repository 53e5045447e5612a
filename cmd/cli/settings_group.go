package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	settingsgroup "github.com/sluice-queue/sluice/internal/group"
)

func (a *app) noteExceptions(queue, above sluice.Queue) {
	own := settingsgroup.Exceptions(queue.Settings, above.Settings)
	if len(own) == 0 {
		a.note("group %s: every setting follows it", above.Name)
		return
	}
	a.note("group %s: every setting follows it, but for %s", above.Name, strings.Join(own, ", "))
}

// groupRow is a group of queues as it is listed.
type groupRow struct {
	Name       string    `json:"name"`
	Queues     int       `json:"queues"`
	Exceptions []string  `json:"exceptions"` // QUEUE.SETTING
	ChangedAt  time.Time `json:"changed_at"`
	ChangedBy  string    `json:"changed_by"`
	Reason     string    `json:"reason"`
}

func (a *app) settingsGroupsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "groups",
		Short:   "List groups of queues, and the settings in which queues differ from theirs",
		Example: "  sluice settings groups\n  sluice settings groups -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				stored, err := client.Queues(ctx, sluice.QueueFilter{Groups: true})
				if err != nil {
					return err
				}
				rows := groupRows(stored)
				if len(rows) == 0 && a.output == "table" {
					a.note("no groups; `sluice settings set 'mail.*' SETTING=VALUE` makes one of all queues whose names begin with mail.")
					return nil
				}
				return printList(a, rows, func(g groupRow) string { return g.Name }, []column[groupRow]{
					{"GROUP", func(g groupRow) string { return g.Name }, false},
					{"QUEUES", func(g groupRow) string { return strconv.Itoa(g.Queues) }, true},
					{"EXCEPTIONS", func(g groupRow) string { return orDash(strings.Join(g.Exceptions, " ")) }, false},
					{"CHANGED", func(g groupRow) string { return ago(g.ChangedAt) }, false},
					{"BY", func(g groupRow) string { return g.ChangedBy }, false},
					{"REASON", func(g groupRow) string { return orDash(g.Reason) }, false},
				})
			})
		},
	}
}

// groupRows returns the groups among queues, sorted by name.
func groupRows(stored []sluice.Queue) (rows []groupRow) {
	at := make(map[string]int)
	var groups []sluice.Queue
	for _, q := range stored {
		if sluice.IsGroup(q.Name) {
			at[q.Name] = len(rows)
			groups = append(groups, q)
			rows = append(rows, groupRow{Name: q.Name, Exceptions: []string{}, ChangedAt: q.ChangedAt, ChangedBy: q.ChangedBy, Reason: q.Reason})
		}
	}
	for _, q := range stored {
		above, is := settingsgroup.Nearest(q.Name, groups)
		if !is {
			continue
		}
		row := &rows[at[above.Name]]
		if !sluice.IsGroup(q.Name) {
			row.Queues++
		}
		for _, name := range settingsgroup.Exceptions(q.Settings, above.Settings) {
			row.Exceptions = append(row.Exceptions, q.Name+"."+name)
		}
	}
	return rows
}

// eachQueue does something with a queue, or with each queue of a group.
func (a *app) eachQueue(ctx context.Context, client *sluice.Client, name string, do func(queue string) error) error {
	if !sluice.IsGroup(name) {
		return do(name)
	}
	queues, err := a.chosenQueues(ctx, client, []string{name}, admission.MaxMaxQueues)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if sluice.IsInternalQueue(q.Name) {
			continue
		}
		if err := do(q.Name); err != nil {
			return err
		}
	}
	return nil
}
