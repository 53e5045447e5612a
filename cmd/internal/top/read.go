package top

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// readTimeout is the deadline of one read of the store.
const readTimeout = 10 * time.Second

// snapshot is the system at one instant.
type snapshot struct {
	at      time.Time
	took    time.Duration
	queues  []queueRow
	more    bool // there are more queues
	holders []presence.Holder
	tended  bool
	tenants []tenantRow   // most in flight first
	alerts  []alert.Alert // firing, silenced or pending
}

// tenantRow is a tenant in a queue with its jobs in flight.
type tenantRow struct {
	queue string
	sluice.TenantFlow
}

func (t tenantRow) full() bool {
	return t.EffectiveLimits.Concurrency > 0 && t.InFlight >= t.EffectiveLimits.Concurrency
}

// tenantsShown is how many tenants of a queue are read.
const tenantsShown = 10

// queueRow is a queue with its figures.
type queueRow struct {
	sluice.Queue
	stat.Summary
	workers int
}

func (q queueRow) name() string { return q.Name }

// state is one word about the queue.
func (q queueRow) state() string {
	switch {
	case q.Settings.PausedAt(q.Now):
		return "paused"
	case q.Wrong != "":
		return "wrong"
	case q.Depth.Ready > 0 && q.workers == 0:
		return "unserved"
	}
	return "open"
}

// read reads the store once, by bounded reads.
func read(ctx context.Context, options Options) (snapshot, error) {
	client := options.Client
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	begun := time.Now()
	queues, more, err := options.Queues(ctx)
	if err != nil {
		return snapshot{}, err
	}
	summaries, err := summariesOf(ctx, options.Store, queues, options.Window)
	if err != nil {
		return snapshot{}, err
	}
	holders, err := presence.Holders(ctx, options.Store)
	if err != nil {
		return snapshot{}, err
	}
	flows, err := client.Flows(ctx, tenantsShown)
	if err != nil {
		return snapshot{}, err
	}
	book, err := alert.Read(ctx, options.Store)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{at: time.Now(), more: more, tenants: tenantRows(flows), alerts: alertsShown(book.Alerts)}
	for _, h := range holders {
		if h.Silent() {
			continue
		}
		s.tended = s.tended || h.Role == presence.RoleUpkeep && h.Mode.Claims()
		s.holders = append(s.holders, h)
	}
	for _, q := range queues {
		row := queueRow{Queue: q, Summary: summaries[q.Name]}
		for _, h := range s.holders {
			if h.Takes(q, q.Now) {
				row.workers++
			}
		}
		s.queues = append(s.queues, row)
	}
	s.took = time.Since(begun)
	return s, nil
}

// summariesOf reads the figures of queues, by name.
func summariesOf(ctx context.Context, store sluice.Store, queues []sluice.Queue, window time.Duration) (map[string]stat.Summary, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	var chosen sluice.QueueFilter
	for _, q := range queues {
		chosen.Names = append(chosen.Names, q.Name)
	}
	found, err := stat.OfQueues(ctx, store, chosen, window)
	byName := make(map[string]stat.Summary, len(found))
	for _, s := range found {
		byName[s.Queue] = s
	}
	return byName, err
}

// tenantRows lists the tenants of all queues, with the tenants at their concurrency limit first.
func tenantRows(flows []sluice.Flow) (rows []tenantRow) {
	for _, f := range flows {
		for _, t := range f.Tenants {
			rows = append(rows, tenantRow{f.Queue, t})
		}
	}
	slices.SortStableFunc(rows, func(a, b tenantRow) int {
		if a.full() != b.full() {
			if a.full() {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.InFlight, a.InFlight)
	})
	return rows
}

// alertsShown drops inactive alerts; firing ones come first.
func alertsShown(all []alert.Alert) (shown []alert.Alert) {
	for _, state := range []alert.State{alert.Firing, alert.Silenced, alert.Pending} {
		for _, a := range all {
			if a.State == state {
				shown = append(shown, a)
			}
		}
	}
	return shown
}

// detail is one queue in detail.
type detail struct {
	queue string
	hour  stat.Summary
	dead  []sluice.Job
}

// deadShown is how many dead letters of a queue are shown.
const deadShown = 5

func readDetail(ctx context.Context, store sluice.Store, client *sluice.Client, queue string) (detail, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	d := detail{queue: queue}
	var err error
	if d.hour, err = stat.Of(ctx, store, queue, time.Hour); err != nil {
		return d, err
	}
	page, err := client.Jobs(ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDead}, Limit: deadShown})
	d.dead = page.Jobs
	return d, err
}
