package cli

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	var options top.Options
	var limit int
	command := &cobra.Command{
		Use:   "top [QUEUE…]",
		Short: "Watch queues, workers, tenants and alerts; pause, resume and inspect",
		Long: `Shows the system on a screen of at least 80 columns and 24 lines, by bounded reads. Keys: ↑↓ choose
a queue, Enter inspects, p pauses and r resumes it (asking for a reason), Tab changes the lower
half, ? helps, q quits. Arguments choose queues; a * stands for any part of a name. The top figures
cover the queues shown; "+" means there are more.`,
		Example: "  sluice top\n  sluice top 'mail.*' --every 5s --window 10m",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, chosen []string) error {
			if err := checkChosen(chosen, limit); err != nil {
				return err
			}
			if terminalWidth(a.stdout) == 0 {
				return codedError{usagef("top needs a terminal"), exitUsage, "`sluice stats` and `sluice queues -o json` tell the same elsewhere"}
			}
			store, err := a.open(command.Context())
			if err != nil {
				return err
			}
			defer a.close(store)
			options.Client, options.Store, options.Label, options.By = a.client(store), store, redactURL(a.db), a.by
			options.Queues = func(ctx context.Context) ([]sluice.Queue, bool, error) {
				return someQueues(ctx, options.Client, chosen, limit)
			}
			options.In, options.Out = os.Stdin, a.stdout
			return top.Run(command.Context(), options)
		},
	}
	flagLimit(command, &limit)
	command.Flags().Var(newDuration(&options.Every, 2*time.Second), "every", "refresh interval")
	command.Flags().Var(newDuration(&options.Window, time.Minute), "window", "window of rates and times")
	return command
}
