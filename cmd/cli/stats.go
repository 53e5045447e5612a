package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// statsFlags are the options of `stats`.
type statsFlags struct {
	window time.Duration
	every  time.Duration
	tenant string
	by     string
	limit  int
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	command := &cobra.Command{
		Use:   "stats [QUEUE…]",
		Short: "Show rates, success, waits and run times of queues",
		Long: `Shows queues now (jobs ready, in flight and dead, age of the oldest) and over a window: counts and
rates of jobs enqueued, completed, failed and so on; the share of ended jobs that completed, and of
leases that expired; p50, p95 and p99 of waiting (due to claim), running (claim to end) and both;
charts. One queue shows all, several a row each.

The figures are what processes count and upkeep sums: some tens of rows, never jobs. Buckets of 10
s are kept for 2 h, minutes for 48 h, hours for 90 d. Times are at most 4.4 % off. Tenants are
separate if among the 20 busiest of their queue in a bucket. Arguments choose queues; a * stands
for any part of a name.`,
		Example: "  sluice stats\n  sluice stats payments\n  sluice stats payments --window 24h --by tenant\n  sluice stats payments --tenant acme\n  sluice stats payments --every 1m --window 15m -o json",
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := checkChosen(args, f.limit); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				queues, err := a.chosenQueues(ctx, client, args, f.limit)
				if err != nil {
					return err
				}
				if f.every > 0 {
					return a.listBuckets(ctx, store, args, queues, f)
				}
				return a.summarise(ctx, store, args, queues, f)
			})
		},
	}
	flagLimit(command, &f.limit)
	flags := command.Flags()
	flags.Var(duration{&f.window}, "window", "how far back, up to 90d (default: 1h, with --every 1h: 24h)")
	flags.Var(duration{&f.every}, "every", "list buckets of this length: 10s, 1m or 1h")
	flags.StringVar(&f.tenant, "tenant", "", "only this tenant")
	flags.StringVar(&f.by, "by", "queue", "group by queue or tenant")
	return command
}

func (f *statsFlags) check() error {
	if f.by != "queue" && f.by != "tenant" {
		return usagef("--by %q is neither queue nor tenant", f.by)
	}
	if f.by == "tenant" && f.tenant != "" {
		return usagef("--by tenant is for all tenants; leave out --tenant %s", f.tenant)
	}
	if f.window == 0 {
		f.window = stat.DefaultWindow
		if f.every == stat.Hour {
			f.window = 24 * time.Hour
		}
	}
	if f.every == 0 {
		return nil
	}
	kind := slices.IndexFunc(stat.Slots(), func(s stat.BucketKind) bool { return s.Every == f.every })
	if kind < 0 {
		return usagef("--every %s is not 10s, 1m or 1h", duration{&f.every})
	}
	if kept := stat.Slots()[kind].Kept; f.window > kept {
		return usagef("slots of %s are kept for %s; a window of %s needs longer ones", duration{&f.every}, duration{&kept}, duration{&f.window})
	}
	return nil
}

// summarise prints the figures of the window.
func (a *app) summarise(ctx context.Context, store sluice.Store, patterns []string, queues []sluice.Queue, f statsFlags) error {
	rows, err := summaries(ctx, store, queues, f)
	if err != nil {
		return err
	}
	if len(rows) == 0 && a.output == "table" {
		a.noteNoStats(patterns, f)
		return nil
	}
	if a.output == "table" && len(rows) == 1 && len(patterns) == 1 && f.by == "queue" {
		return a.printSummary(rows[0], f)
	}
	return printList(a, statsRows(rows), func(r statsRow) string { return r.Queue }, statsColumns(f))
}

// summaries reads the figures of the chosen queues.
func summaries(ctx context.Context, store sluice.Store, queues []sluice.Queue, f statsFlags) ([]stat.Summary, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	chosen := sluice.QueueFilter{Names: namesOf(queues)}
	switch {
	case f.by == "tenant":
		return stat.OfTenants(ctx, store, chosen, f.window)
	case f.tenant == "":
		return stat.OfQueues(ctx, store, chosen, f.window)
	}
	var out []stat.Summary
	for _, name := range chosen.Names {
		s, err := stat.OfTenant(ctx, store, name, f.tenant, f.window)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func namesOf(queues []sluice.Queue) (names []string) {
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// noteNoStats says why there is nothing.
func (a *app) noteNoStats(queues []string, f statsFlags) {
	if f.by == "tenant" || len(queues) > 0 || f.every > 0 {
		a.note("nothing was counted in the last %s", duration{&f.window})
		return
	}
	a.note("no queues; `sluice enqueue QUEUE PAYLOAD` makes one")
}

// listBuckets prints the figures bucket by bucket.
func (a *app) listBuckets(ctx context.Context, store sluice.Store, patterns []string, queues []sluice.Queue, f statsFlags) error {
	filter := stat.Filter{Queues: namesOf(queues), Every: f.every, Tenant: f.tenant, Tenants: f.by == "tenant"}
	if len(queues) > 0 {
		filter.To = queues[0].Now
		filter.From = filter.To.Add(-f.window)
	}
	slots, err := stat.Read(ctx, store, filter)
	if err != nil {
		return err
	}
	if len(slots) == mostBuckets {
		a.note("only the first %s slots are listed; ask for a queue, or for a shorter window", draw.Count(mostBuckets))
	}
	slots = slices.DeleteFunc(slots, func(s stat.Stat) bool { return filter.Tenants && s.Tenant == "" })
	if len(slots) == 0 && a.output == "table" {
		a.noteNoStats(patterns, f)
		return nil
	}
	return printList(a, bucketRows(slots), func(r bucketRow) string { return r.Queue }, bucketColumns(len(patterns) != 1 || len(queues) != 1, f))
}

// mostBuckets is the most buckets that [sluice.Client.Stats] lists.
const mostBuckets = 10_000
