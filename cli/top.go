package cli

import (
	"context"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	var options top.Options
	var limit int
	command := &cobra.Command{
		Use:   "top [QUEUE…]",
		Short: "Watch queues, workers, tenants and alerts on the terminal; pause, resume and inspect",
		Long: `Shows the system on one screen of 80 columns and 24 lines or more, and looks again every --every. Each look is a
bounded read, whatever the number of jobs. Keys: ↑↓ choose a queue, Enter inspects it, p pauses and r resumes it (a
reason is asked for), Tab changes the lower half, ? helps, q quits. Names choose queues; a * in one stands for any part of a
name. The figures above are of the queues shown; a + says that there are more.`,
		Example: "  sluice top\n  sluice top 'mail.*' --every 5s --window 10m",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, chosen []string) error {
			if err := checkChosen(chosen, limit); err != nil {
				return err
			}
			if terminalWidth(a.stdout) == 0 {
				return codedError{usagef("top needs a terminal"), exitUsage, "«sluice stats» and «sluice queues -o json» tell the same elsewhere"}
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
	command.Flags().Var(newDuration(&options.Every, 2*time.Second), "every", "how often to look")
	command.Flags().Var(newDuration(&options.Window, time.Minute), "window", "over how long rates and times are told")
	return command
}
