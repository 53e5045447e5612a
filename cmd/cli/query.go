package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// queryFlags select jobs by what needs reading each job.
type queryFlags struct {
	fingerprint, error                             string
	dueFrom, dueBefore, createdFrom, createdBefore string

	held  bool
	where string
}

// queryNames are the names of these flags.
var queryNames = []string{"fingerprint", "error", "due-from", "due-before", "created-from", "created-before", "held", "where"}

func (f *queryFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.fingerprint, "fingerprint", "", "fingerprint, from \"sluice dead groups\"")
	flags.StringVar(&f.error, "error", "", "error contains this text")
	flags.StringVar(&f.dueFrom, "due-from", "", "due from this instant")
	flags.StringVar(&f.dueBefore, "due-before", "", "due before this instant")
	flags.StringVar(&f.createdFrom, "created-from", "", "created from this instant")
	flags.StringVar(&f.createdBefore, "created-before", "", "created before this instant")
	flags.BoolVar(&f.held, "held", false, "held jobs")
	flags.StringVar(&f.where, "where", "", whereHelp)
}

// query combines a filter and these flags.
func (f *queryFlags) query(filter sluice.JobFilter) (q search.Query, err error) {
	q = search.Query{
		Queue: filter.Queue, Tenant: filter.Tenant, Key: filter.Key, States: filter.States, Labels: filter.Labels, Batch: filter.Batch,
		MinAttempts: filter.MinAttempts, MinRecoveries: filter.MinRecoveries,
		Fingerprint: f.fingerprint, Error: f.error, Held: f.held,
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
	if f.where != "" {
		if q, err = q.And(f.where, time.Now()); err != nil {
			return q, usageError{err}
		}
	}
	return q, q.Check()
}

// paceFlags say how an operation proceeds.
type paceFlags struct {
	rate   sluice.Rate
	canary int
	stop   percentage
	detach bool
}

// paceNames are the flags that turn an act on many jobs into an operation.
var paceNames = []string{"rate", "canary", "stop-if-failed", "detach"}

func (f *paceFlags) add(command *cobra.Command, kind operation.Kind) {
	flags := command.Flags()
	flags.Var(rate{&f.rate}, "rate", "rate, such as 20/s; upkeep does it")
	if kind == operation.KindRequeue {
		flags.IntVar(&f.canary, "canary", 0, "requeue this many first and wait; upkeep does it")
		flags.Var(&f.stop, "stop-if-failed", "stop if a larger share of watched jobs fails again, such as 10% (with --canary: 10%)")
	}
	flags.BoolVar(&f.detach, "detach", false, "let upkeep do it, without waiting")
}

// percentage is a flag value that reads a share in per cent.
type percentage float64

// String shows the share.
func (s percentage) String() string {
	if s == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(s), 'g', 6, 64) + "%"
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
