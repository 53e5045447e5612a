package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

// queryFlags choose jobs by what is looked at job by job.
type queryFlags struct {
	fingerprint, error                             string
	dueFrom, dueBefore, createdFrom, createdBefore string
}

// queryNames are the names of the flags.
var queryNames = []string{"fingerprint", "error", "due-from", "due-before", "created-from", "created-before"}

func (f *queryFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.fingerprint, "fingerprint", "", "whose failures have this fingerprint; «sluice dead groups» lists them")
	flags.StringVar(&f.error, "error", "", "with this in the text of their errors")
	flags.StringVar(&f.dueFrom, "due-from", "", "due at this instant or later")
	flags.StringVar(&f.dueBefore, "due-before", "", "due before this instant")
	flags.StringVar(&f.createdFrom, "created-from", "", "created at this instant or later")
	flags.StringVar(&f.createdBefore, "created-before", "", "created before this instant")
}

// query makes a query of what a filter says and of these flags.
func (f *queryFlags) query(filter sluice.JobFilter) (q sluice.JobQuery, err error) {
	q = sluice.JobQuery{
		Queue: filter.Queue, Tenant: filter.Tenant, Key: filter.Key, States: filter.States, Labels: filter.Labels,
		MinAttempts: filter.MinAttempts, MinRecoveries: filter.MinRecoveries,
		Fingerprint: f.fingerprint, Error: f.error,
	}
	var failed [4]error
	q.DueFrom, failed[0] = parseTime("--due-from", f.dueFrom)
	q.DueBefore, failed[1] = parseTime("--due-before", f.dueBefore)
	q.CreatedFrom, failed[2] = parseTime("--created-from", f.createdFrom)
	q.CreatedBefore, failed[3] = parseTime("--created-before", f.createdBefore)
	for _, err := range failed {
		if err != nil {
			return q, err
		}
	}
	return q, q.Check()
}

// paceFlags say how an operation goes about its work.
type paceFlags struct {
	rate   sluice.Rate
	canary int
	stop   percentage
	detach bool
}

// paceNames are the names of the flags that make an act on many jobs an operation.
var paceNames = []string{"rate", "canary", "stop-if-failed", "detach"}

func (f *paceFlags) add(command *cobra.Command, kind sluice.OperationKind) {
	flags := command.Flags()
	flags.Var(rate{&f.rate}, "rate", "on how many jobs to act in a time, such as 20/s; upkeep does it")
	if kind == sluice.OperationRequeue {
		flags.IntVar(&f.canary, "canary", 0, "requeue so many first, and wait until they have ended; upkeep does it")
		flags.Var(&f.stop, "stop-if-failed", "stop if more than this share of those that are watched fail again, such as 10%; with --canary 10% unless it says another")
	}
	flags.BoolVar(&f.detach, "detach", false, "let upkeep do it, and do not wait for it")
}

// percentage is a flag's value that reads a share in per cent.
type percentage float64

// String shows the share.
func (s percentage) String() string {
	if s == 0 {
		return ""
	}
	return strconv.FormatFloat(math.Round(1e4*float64(s))/100, 'f', -1, 64) + "%"
}

// Set reads the share.
func (s *percentage) Set(text string) error {
	number, found := strings.CutSuffix(strings.TrimSpace(text), "%")
	parsed, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !found || !(parsed > 0 && parsed <= 100) {
		return errors.New("it is not a share such as 10%, above 0% and at most 100%")
	}
	*s = percentage(parsed / 100)
	return nil
}

// Type names the value in the help.
func (percentage) Type() string { return "share" }
