package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/forecast"
)

// wavesFlags are the options of `waves`.
type wavesFlags struct {
	request   forecast.Request
	by        string
	histogram bool
	count     bool
}

func (a *app) wavesCommand() *cobra.Command {
	var f wavesFlags
	command := &cobra.Command{
		Use:   "forecast [QUEUE]",
		Short: "Forecast what falls due, and when it is done",
		Long: `Lists buckets of 1 minute, 5 minutes or 1 hour: when the last job starts, when all are done and how
late, and how many due jobs wait at the end. Present rates and limits apply, including tenants'.
--rate, --batch, --concurrency and --duration assume other values for the queue; tenants keep theirs.

The command reads upkeep's last count, a few rows, and says its age. Without a recent one it counts
itself, reading every waiting job. The forecast knows the present jobs only: nothing fails, nothing
comes in, and jobs start in due order.`,
		Example: "  sluice forecast payments\n  sluice forecast payments --by tenant --bucket 1h --ahead 24h\n  sluice forecast payments --rate 200/s --duration 30s\n  sluice forecast --histogram --ahead 24h",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.check(command, a.output); err != nil {
				return err
			}
			if len(args) > 0 {
				f.request.Queue = args[0]
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				found, err := a.forecast(ctx, store, f)
				if err != nil {
					return err
				}
				return a.printForecast(found, f)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.by, "by", "queue", "group by queue or tenant")
	flags.Var(duration{&f.request.Bucket}, "bucket", "bucket length: 1m, 5m or 1h (default: for some 24 rows)")
	flags.Var(newDuration(&f.request.Ahead, 2*time.Hour), "ahead", "how far ahead, up to 7d")
	flags.Var(rate{&f.request.WhatIf.Rate}, "rate", "assume this rate, such as 200/s")
	flags.Var(jobsPer{&f.request.WhatIf}, "batch", "assume batches, such as 500/5s, instead of the queue's rate")
	flags.IntVar(&f.request.WhatIf.Concurrency, "concurrency", 0, "assume this concurrency limit, whatever concurrency and workers")
	flags.Var(duration{&f.request.WhatIf.RunTime}, "duration", "assume this run time (default: the recent mean)")
	flags.BoolVar(&f.histogram, "histogram", false, "draw a histogram")
	flags.BoolVar(&f.count, "count", false, "count now; reads every waiting job")
	return command
}

func (f *wavesFlags) check(command *cobra.Command, output string) error {
	switch {
	case f.by != "queue" && f.by != "tenant":
		return usagef("--by %q is neither queue nor tenant", f.by)
	case f.histogram && output != "table":
		return usagef("--histogram is for people; leave out -o %s", output)
	case command.Flags().Changed("concurrency") && f.request.WhatIf.Concurrency < 1:
		return usagef("--concurrency %d is not at least 1", f.request.WhatIf.Concurrency)
	}
	f.request.Tenants = f.by == "tenant"
	return nil
}

// jobsPer is a flag value: jobs per interval.
type jobsPer struct{ into *forecast.WhatIf }

// String shows the batch.
func (b jobsPer) String() string {
	if b.into == nil || b.into.Batch == 0 {
		return ""
	}
	return strconv.Itoa(b.into.Batch) + "/" + duration{&b.into.Every}.String()
}

// Set reads the batch.
func (b jobsPer) Set(text string) error {
	jobs, every, found := strings.Cut(text, "/")
	if every != "" && (every[0] < '0' || every[0] > '9') {
		every = "1" + every // a unit alone
	}
	number, err := strconv.Atoi(jobs)
	interval, otherErr := jobline.ParseDuration(every)
	if !found || err != nil || otherErr != nil || number < 1 || interval <= 0 {
		return errors.New("it is not a batch such as 500/5s")
	}
	b.into.Batch, b.into.Every = number, interval
	return nil
}

// Type names the value in the help.
func (jobsPer) Type() string { return "batch" }

// forecast looks ahead. If asked to, or if nobody else counts, it counts first.
func (a *app) forecast(ctx context.Context, store sluice.Store, f wavesFlags) (forecast.Forecast, error) {
	found, err := forecast.Of(ctx, store, f.request)
	if err != nil || !f.count && fresh(found) {
		return found, err
	}
	begun := time.Now()
	counted, err := forecast.Recount(ctx, store)
	last := lastCount(found)
	switch {
	case errors.Is(err, sluice.ErrReader) && !f.count && last.IsZero():
		a.note("nobody has counted what falls due, and this role may not: `sluice upkeep` does")
		return found, nil
	case err != nil && (f.count || last.IsZero()):
		return found, err
	case err != nil:
		a.note("what falls due was last counted %s, and cannot be counted now: %v", ago(last), err)
		return found, nil
	case f.count:
		a.note("counted %s in %s", jobs(counted.Jobs), draw.Duration(time.Since(begun)))
	case last.IsZero():
		a.note("nobody has counted what falls due; counted %s in %s. `sluice upkeep` does it every now and then", jobs(counted.Jobs), draw.Duration(time.Since(begun)))
	default:
		a.note("what falls due was last counted %s; counted %s in %s. `sluice upkeep` does it every now and then", ago(last), jobs(counted.Jobs), draw.Duration(time.Since(begun)))
	}
	return forecast.Of(ctx, store, f.request)
}

// fresh reports whether somebody counts. A new queue, missing in the last count, is alone no reason to count again.
func fresh(f forecast.Forecast) bool {
	return len(f.Queues) == 0 || slices.ContainsFunc(f.Queues, func(q forecast.Queue) bool { return !q.Stale })
}

func lastCount(f forecast.Forecast) time.Time {
	var last time.Time
	for _, q := range f.Queues {
		if q.CountedAt.After(last) {
			last = q.CountedAt
		}
	}
	return last
}

func (a *app) printForecast(f forecast.Forecast, flags wavesFlags) error {
	if a.output == "ids" {
		return printList(a, f.Queues, func(q forecast.Queue) string { return q.Queue }, nil)
	}
	return a.printOne(f, func() error {
		if len(f.Queues) == 0 {
			a.note("no queues; `sluice enqueue QUEUE PAYLOAD` makes one")
			return nil
		}
		var err error
		switch {
		case flags.histogram:
			err = a.printHistogram(f)
		case flags.by == "tenant":
			err = a.printTenantWaves(f)
		default:
			err = a.printWaves(f)
		}
		if err == nil {
			a.noteForecast(f)
		}
		return err
	})
}

// waveRow is a row of the table: a bucket of a queue, or of a tenant if these are separate.
type waveRow struct {
	queue   forecast.Queue
	wave    forecast.Bucket
	tenant  string
	jobs    int
	limited bool
}

func (a *app) printWaves(f forecast.Forecast) error {
	var rows []waveRow
	for _, q := range f.Queues {
		for _, w := range q.Waves {
			if w.Jobs > 0 || w.Starts > 0 || w.Backlog > 0 {
				rows = append(rows, waveRow{queue: q, wave: w, jobs: w.Jobs, limited: len(q.Limits) > 0})
			}
		}
	}
	if len(rows) == 0 {
		a.note("nothing falls due before %s", f.Until.Format(time.RFC3339))
		return nil
	}
	return printTable(a, rows, append([]column[waveRow]{
		{"QUEUE", func(r waveRow) string { return r.queue.Queue }, false},
		{"DUE AT", dueAt, false},
		{"JOBS", func(r waveRow) string { return draw.Count(r.jobs) }, true},
		{"STARTS", func(r waveRow) string { return draw.Count(r.wave.Starts) }, true},
		{"BACKLOG", func(r waveRow) string { return draw.Count(r.wave.Backlog) }, true},
		{"USED", used, true},
	}, waveTimes()...))
}

// waveTimes are the columns for when a bucket's jobs start and are done.
func waveTimes() []column[waveRow] {
	return []column[waveRow]{
		{"LAST START", func(r waveRow) string { return waveTime(r, r.wave.LastStart) }, true},
		{"DONE", func(r waveRow) string { return waveTime(r, r.wave.Finished) }, true},
		{"LATE", late, true},
	}
}

func (a *app) printTenantWaves(f forecast.Forecast) error {
	var rows []waveRow
	for _, q := range f.Queues {
		for _, w := range q.Waves {
			for _, share := range shares(w.Tally) {
				rows = append(rows, waveRow{queue: q, wave: ofTenant(w, share), tenant: share.name, jobs: share.jobs})
			}
		}
	}
	if len(rows) == 0 {
		a.note("nothing falls due before %s", f.Until.Format(time.RFC3339))
		return nil
	}
	return printTable(a, rows, append([]column[waveRow]{
		{"QUEUE", func(r waveRow) string { return r.queue.Queue }, false},
		{"DUE AT", dueAt, false},
		{"OF TENANT", func(r waveRow) string { return orDash(r.tenant) }, false},
		{"JOBS", func(r waveRow) string { return draw.Count(r.jobs) }, true},
	}, waveTimes()...))
}

// share is one tenant's part of a bucket.
type share struct {
	name   string
	others bool
	jobs   int
}

// ofTenant is a bucket with a tenant's times, if known, else those of all.
func ofTenant(w forecast.Bucket, of share) forecast.Bucket {
	for _, t := range w.ByTenant {
		if t.Others == of.others && (of.others || t.Tenant == of.name) {
			w.LastStart, w.Finished, w.Late = t.LastStart, t.Finished, t.Late
		}
	}
	return w
}

// shares lists the tenants of a bucket, largest first, then the jobs of tenants not counted by name.
func shares(t forecast.Tally) []share {
	var out []share
	others := t.Jobs
	for _, name := range slices.Sorted(maps.Keys(t.Tenants)) {
		out = append(out, share{name: name, jobs: t.Tenants[name]})
		others -= t.Tenants[name]
	}
	slices.SortStableFunc(out, func(a, b share) int { return cmp.Compare(b.jobs, a.jobs) })
	if others > 0 {
		out = append(out, share{"(others)", true, others})
	}
	return out
}

func dueAt(r waveRow) string {
	if r.wave.Span == 0 {
		return "now"
	}
	return r.wave.At.Format("2006-01-02T15:04Z")
}

func used(r waveRow) string {
	if !r.limited || r.wave.Span == 0 {
		return "-"
	}
	return draw.Percent(0, r.wave.Used) + "%"
}

// waveTime formats an instant, without the day if that is the bucket's.
func waveTime(r waveRow, at time.Time) string {
	switch {
	case r.wave.Never():
		return "never"
	case at.IsZero():
		return "-"
	case at.Year() > r.wave.At.Year()+1:
		return "in years"
	case at.YearDay() != r.wave.At.YearDay():
		return at.Format("2006-01-02T15:04:05Z")
	}
	return at.Format("15:04:05Z")
}

func late(r waveRow) string {
	switch {
	case r.wave.Jobs == 0 || r.wave.Never():
		return "-"
	case r.wave.Late < time.Second:
		return "0s"
	}
	return draw.Duration(r.wave.Late)
}

// noteForecast notes the basis of the figures.
func (a *app) noteForecast(f forecast.Forecast) {
	for _, q := range f.Queues {
		if !q.CountedAt.IsZero() {
			a.note("%s, counted %s ago: %s", q.Queue, draw.Duration(f.Now.Sub(q.CountedAt)), q.Held())
		}
		if q.InFlight.Jobs > 0 {
			a.note("%s: %s in flight", q.Queue, jobs(q.InFlight.Jobs))
		}
		if q.Blocked.Jobs > 0 {
			a.note("%s: %s blocked, and left out", q.Queue, jobs(q.Blocked.Jobs))
		}
		if q.Later.Jobs > 0 {
			a.note("%s: %s due after %s, and left out", q.Queue, jobs(q.Later.Jobs), f.Until.Format(time.RFC3339))
		}
		for _, note := range q.Notes {
			a.note("%s: %s", q.Queue, note)
		}
	}
}
