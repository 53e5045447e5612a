package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

// statsFlags are the options of «stats».
type statsFlags struct {
	window time.Duration
	every  time.Duration
	tenant string
	by     string
}

func (a *app) statsCommand() *cobra.Command {
	var f statsFlags
	command := &cobra.Command{
		Use:   "stats [QUEUE…]",
		Short: "Show how queues did: rates, success, waits and run times, of the last hour or longer",
		Long: `Shows how queues are and how they did in a window of time: jobs that are ready, the age of the oldest,
what is in flight and dead; how many jobs were enqueued, completed, failed and so on, and at what
rate; the part of those that ended which completed, and the part of the leases that ran out; the times
that a half, 95 and 99 of 100 jobs did not exceed, for waiting (due to claim), running (claim to end)
and both; and pictures of the window. Of a single queue it shows all, of several a line each.

It reads what every process of Sluice counts and upkeep adds up, some tens of rows, and never counts
jobs: slots of 10 s are kept for 2 h, minutes for 48 h, hours for 90 d. --every lists them one by one.
The times are at most 4.4 % off. Tenants are told apart if they were among the 20 of their queue that
moved the most jobs in the slot.`,
		Example: "  sluice stats\n  sluice stats payments\n  sluice stats payments --window 24h --by tenant\n  sluice stats payments --tenant acme\n  sluice stats payments --every 1m --window 15m -o json",
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				if f.every > 0 {
					return a.listSlots(ctx, client, args, f)
				}
				return a.summarise(ctx, client, args, f)
			})
		},
	}
	flags := command.Flags()
	flags.Var(duration{&f.window}, "window", "how far back, up to 90d (default: 1h, with --every 1h: 24h)")
	flags.Var(duration{&f.every}, "every", "list slots of this length one by one: 10s, 1m or 1h")
	flags.StringVar(&f.tenant, "tenant", "", "of this tenant only")
	flags.StringVar(&f.by, "by", "queue", "whose jobs to tell apart: queue, or tenant")
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
		f.window = sluice.StatWindow
		if f.every == sluice.StatHour {
			f.window = 24 * time.Hour
		}
	}
	if f.every == 0 {
		return nil
	}
	kind := slices.IndexFunc(sluice.Slots(), func(s sluice.StatSlot) bool { return s.Every == f.every })
	if kind < 0 {
		return usagef("--every %s is not 10s, 1m or 1h", duration{&f.every})
	}
	if kept := sluice.Slots()[kind].Kept; f.window > kept {
		return usagef("slots of %s are kept for %s; a window of %s needs longer ones", duration{&f.every}, duration{&kept}, duration{&f.window})
	}
	return nil
}

// summarise tells the figures of the window.
func (a *app) summarise(ctx context.Context, client *sluice.Client, queues []string, f statsFlags) error {
	rows, err := summaries(ctx, client, queues, f)
	if err != nil {
		return err
	}
	if len(rows) == 0 && a.output == "table" {
		a.noteNoStats(queues, f)
		return nil
	}
	if a.output == "table" && len(rows) == 1 && len(queues) == 1 && f.by == "queue" {
		return a.printSummary(rows[0], f)
	}
	return printList(a, statsRows(rows), func(r statsRow) string { return r.Queue }, statsColumns(f))
}

// summaries reads them for the queues that are named, or for all.
func summaries(ctx context.Context, client *sluice.Client, queues []string, f statsFlags) ([]sluice.Summary, error) {
	if len(queues) == 0 {
		names, err := queueNames(ctx, client)
		if err != nil {
			return nil, err
		}
		switch {
		case f.tenant != "":
			queues = names
		case f.by == "tenant":
			return client.TenantSummaries(ctx, "", f.window)
		default:
			return client.Summaries(ctx, f.window)
		}
	}
	var out []sluice.Summary
	for _, queue := range queues {
		found, err := summariesOf(ctx, client, queue, f)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func summariesOf(ctx context.Context, client *sluice.Client, queue string, f statsFlags) ([]sluice.Summary, error) {
	if f.by == "tenant" {
		if _, err := client.Queue(ctx, queue); err != nil {
			return nil, err
		}
		return client.TenantSummaries(ctx, queue, f.window)
	}
	read := func() (sluice.Summary, error) { return client.Summary(ctx, queue, f.window) }
	if f.tenant != "" {
		read = func() (sluice.Summary, error) { return client.TenantSummary(ctx, queue, f.tenant, f.window) }
	}
	s, err := read()
	return []sluice.Summary{s}, err
}

func queueNames(ctx context.Context, client *sluice.Client) ([]string, error) {
	queues, err := client.Queues(ctx, sluice.QueueFilter{})
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names, err
}

// noteNoStats says why there is nothing.
func (a *app) noteNoStats(queues []string, f statsFlags) {
	if f.by == "tenant" || len(queues) > 0 || f.every > 0 {
		a.note("nothing was counted in the last %s", duration{&f.window})
		return
	}
	a.note("no queues; «sluice enqueue QUEUE PAYLOAD» makes one")
}

// listSlots tells what happened slot by slot.
func (a *app) listSlots(ctx context.Context, client *sluice.Client, queues []string, f statsFlags) error {
	stored, err := client.Queues(ctx, sluice.QueueFilter{})
	if err != nil {
		return err
	}
	for _, name := range queues {
		if !slices.ContainsFunc(stored, func(q sluice.Queue) bool { return q.Name == name }) {
			return fmt.Errorf("queue %.80q: %w", name, sluice.ErrNotFound)
		}
	}
	filter := sluice.StatFilter{Every: f.every, Tenant: f.tenant, Tenants: f.by == "tenant"}
	if len(queues) == 1 {
		filter.Queue = queues[0]
	}
	if len(stored) > 0 {
		filter.To = stored[0].Now
		filter.From = filter.To.Add(-f.window)
	}
	slots, err := client.Stats(ctx, filter)
	if err != nil {
		return err
	}
	if len(slots) == mostSlots {
		a.note("only the first %s slots are listed; ask for a queue, or for a shorter window", count(mostSlots))
	}
	slots = slices.DeleteFunc(slots, func(s sluice.Stat) bool {
		return len(queues) > 0 && !slices.Contains(queues, s.Queue) || filter.Tenants && s.Tenant == ""
	})
	if len(slots) == 0 && a.output == "table" {
		a.noteNoStats(queues, f)
		return nil
	}
	return printList(a, slotRows(slots), func(r slotRow) string { return r.Queue }, slotColumns(len(queues) != 1, f))
}

// mostSlots is how many Client.Stats lists at the most.
const mostSlots = 10_000
