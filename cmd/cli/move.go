package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/move"
)

func (a *app) moveCommand() *cobra.Command {
	var from, to string
	var reopen bool
	var options move.Options
	command := &cobra.Command{
		Use:   "move",
		Short: "Move everything from one store to another, such as from SQLite to PostgreSQL",
		Long: `Moves queues, settings, tenants, tiers, limits, jobs with all their data, history, keys, order,
runs at engines, forecasts and the audit, then compares both stores. The target must be empty; its
tables are created.

From the start the source takes and hands out no jobs. Once nobody holds a job, the source never
changes again; writers learn where it went. Claimed jobs get --wait to settle, else the source
reopens as before. Nobody can open an incomplete target. Run a failed move again to continue it;
--reopen gives it up.`,
		Example: "  sluice move --from sqlite:jobs.db --to postgres://sluice@db.example.com/jobs\n  sluice move --from sqlite:jobs.db --to postgres://sluice@db.example.com/jobs --wait 5m\n  sluice move --from sqlite:jobs.db --reopen",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			a.takeFrom(from)
			source := dbFlag
			if from != "" {
				source = "--from"
			}
			if err := checkSource(source, a.db); err != nil {
				return err
			}
			if reopen == (to != "") {
				return usagef("give either --to or --reopen")
			}
			if reopen {
				if err := move.Reopen(command.Context(), a.db); err != nil {
					return moveError(source, err)
				}
				a.note("open again; what its target has got is of no use, drop it")
				return nil
			}
			if _, err := parseAddressOf("--to", to); err != nil {
				return err
			}
			return a.move(command.Context(), source, to, options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&from, "from", "", "store to move (default: --db)")
	flags.StringVar(&to, "to", "", "the empty target store")
	flags.Var(newDuration(&options.Wait, 0), "wait", "how long to wait for claimed jobs")
	flags.BoolVar(&reopen, "reopen", false, "give up a failed move: the source goes on as before")
	return command
}

func (a *app) move(ctx context.Context, source, to string, options move.Options) error {
	var shown *progress
	doing := ""
	options.Progress = func(p move.Progress) {
		if p.Doing != doing {
			if shown != nil {
				shown.leave()
			}
			doing, shown = p.Doing, a.newProgress(p.Doing, int(p.Of))
		}
		if p.Doing == "waiting" {
			shown.set(int(p.Claimed), "jobs are claimed")
			return
		}
		shown.set(int(p.Rows), p.Table)
	}
	report, err := move.Run(ctx, a.db, to, options)
	if shown != nil {
		shown.leave()
	}
	if err != nil {
		return moveError(source, err)
	}
	return a.printOne(report, func() error {
		_, err := fmt.Fprintln(a.stdout, movedText(report, redactURL(to)))
		return err
	})
}

// movedText says what a move has done.
func movedText(report move.Report, to string) string {
	var kinds []string
	for _, t := range report.Tables {
		if t.Rows > 0 {
			kinds = append(kinds, t.Name+" "+draw.Count(int(t.Rows)))
		}
	}
	took := report.Took.Round(time.Millisecond)
	switch {
	case report.Already:
		return fmt.Sprintf("moved to %s before; nothing is left to do", to)
	case len(report.Tables) == 0:
		return fmt.Sprintf("moved to %s, and compared, by an earlier run; it is open now", to)
	case len(kinds) == 0:
		return fmt.Sprintf("moved to %s in %s; there was nothing to copy", to, took)
	}
	return fmt.Sprintf("moved to %s in %s, and compared: %s", to, took, strings.Join(kinds, ", "))
}

// checkSource refuses a source that is no address, or a file that is not there. Source is the flag that named it.
func checkSource(source, named string) error {
	at, err := parseAddressOf(source, named)
	if err != nil || at.sqlite == "" {
		return err
	}
	if _, err := os.Stat(at.sqlite); os.IsNotExist(err) {
		return codedError{fmt.Errorf("%s: there is no file %s", source, at.sqlite), exitUnreachable, "name the file of the store to move with " + source}
	}
	return nil
}

// moveError says what to do about an error of a move. Source is the flag that named the source.
func moveError(source string, err error) error {
	var busy *move.BusyError
	if errors.As(err, &busy) {
		return codedError{err, exitRefused, "nothing was changed; stop what claims jobs, or add --wait 5m"}
	}
	flag := source
	if strings.HasPrefix(err.Error(), "open the target: ") {
		flag = "--to"
	}
	if errors.Is(err, sluice.ErrUnavailable) && !errors.Is(err, sluice.ErrMoved) && !errors.Is(err, move.ErrRefused) && !diskFull(err) {
		return codedError{err, exitUnreachable, "check " + flag + ", and that the database is up; then run it again"}
	}
	return err
}
