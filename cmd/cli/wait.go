package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	jobprogress "github.com/sluice-queue/sluice/progress"
)

func (a *app) waitCommand() *cobra.Command {
	most := defaultWait
	command := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait for the end of a job, and print its result",
		Long: `Prints the result of a completed job, as JSON. On standard error, it prints how far the job has come,
if its handler reports that. A dead or cancelled job is an error, with exit code 1.
A job that takes longer than --for goes on; the exit code is then 124.`,
		Example: "  sluice wait 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice wait 01a1fb72-1dea-7abc-8fc6-99e4817522bb --for 10m -o json",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			store, err := a.open(command.Context())
			if err != nil {
				return err
			}
			defer a.close(store)
			return a.waitFor(command.Context(), store, id, most)
		},
	}
	command.Flags().Var(duration{&most}, "for", "longest wait")
	return command
}

// defaultWait is how long the command line waits for a job.
const defaultWait = time.Minute

// waitFor waits for the end of a job and prints its result.
func (a *app) waitFor(ctx context.Context, store sluice.Store, id sluice.ID, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	end, err := await.New(store).Follow(ctx, id, func(r jobprogress.Report) { a.note("%s", r) })
	var failed *await.FailedError
	switch {
	case errors.As(err, &failed):
		return codedError{err, exitFailed, fmt.Sprintf("`sluice job %s` shows its attempts", id)}
	case errors.Is(err, context.DeadlineExceeded):
		return codedError{err, exitTimeout, fmt.Sprintf("the job goes on; `sluice why %s` says what it waits for", id)}
	case err != nil:
		return err
	}
	if end.ResultRemoved && a.output == "table" {
		return codedError{&await.RemovedError{End: end}, exitFailed, ""}
	}
	return a.printNamed(end, end.ID.String(), func() error {
		if len(end.Result) == 0 {
			a.note("completed, without a result")
			return nil
		}
		_, err := fmt.Fprintf(a.stdout, "%s\n", end.Result)
		return err
	})
}
