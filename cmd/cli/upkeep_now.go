package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

func (a *app) upkeepNowCommand() *cobra.Command {
	dryRun := false
	command := &cobra.Command{
		Use:   "now TASK",
		Short: "Have the store do one task now: checkpoint, vacuum or retention",
		Long: `Ends within --timeout, and says what is left. A server gives itself 8 s.

checkpoint  SQLite: brings the write-ahead log into the file, and cuts it
vacuum      SQLite: gives free pages back to the disk; those who write wait meanwhile
            PostgreSQL: vacuum (analyze) of our tables, in which nobody waits
retention   deletes finished jobs that their queues keep no longer, as upkeep does by itself`,
		Example: "  sluice upkeep now retention --dry-run\n  sluice upkeep now vacuum --reason \"a million jobs were deleted\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				done, err := health.Maintain(ctx, store, health.Task(args[0]), dryRun, a.act(""))
				if err != nil {
					return err
				}
				return a.printOne(done, func() error {
					_, err := fmt.Fprint(a.stdout, maintainedText(done))
					return err
				})
			})
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "say what the task would do, and change nothing")
	return command
}

// maintainedText is the result of a task: a sentence, then each part, then what is left.
func maintainedText(m health.Maintained) string {
	var out strings.Builder
	out.WriteString(checkup.Maintained(m) + "\n")
	for _, p := range m.Parts {
		if p.Rows > 0 || p.Bytes > 0 {
			fmt.Fprintf(&out, "  %s: %s\n", p.Name, partText(m, p))
		}
	}
	for _, one := range m.Left {
		out.WriteString("left: " + one + "\n")
	}
	return out.String()
}

// partText is the result of a task in a part of the store.
func partText(m health.Maintained, p health.MaintainedPart) string {
	return checkup.Maintained(health.Maintained{Task: m.Task, DryRun: m.DryRun, Rows: p.Rows, Bytes: p.Bytes, Parts: []health.MaintainedPart{p}})
}
