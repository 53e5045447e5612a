package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
)

const (
	// keepInterval is how often the leases of what is held are looked after.
	keepInterval = time.Second
	// beatInterval is how often the dispatcher tells the store that it is alive.
	beatInterval = 5 * time.Second
)

// keep renews the leases of what is held, and tells that the dispatcher is alive, until ctx ends and nothing is held.
func (d *Dispatcher) keep(ctx, work context.Context) {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	var beaten time.Time
	var told []sluice.Condition
	for {
		held := d.renew(work)
		d.tellBegun(work, keepInterval)
		// What has begun to keep it from its work, or does no longer, is told at once.
		if now := d.conditions(); time.Since(beaten) >= beatInterval || !slices.Equal(now, told) {
			beaten, told = time.Now(), now
			d.beat(work, held)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// renew gives what is held more time when a third of its lease is gone, and notes what is lost. Jobs of which it is not
// known whether they were started are looked at each time: a person may have ended them. It tells how many are held.
func (d *Dispatcher) renew(work context.Context) (held int) {
	d.mu.Lock()
	lanes := slices.Collect(maps.Values(d.lanes))
	d.mu.Unlock()
	now := time.Now() // before the store is asked
	var due []*hold
	var renewals []sluice.Renewal
	for _, l := range lanes {
		held += l.holds()
		for _, h := range l.holding(func(h *hold) bool { return h.lost == "" && (h.doubtful || pause.Since(h.renewed) >= h.lease/3) }) {
			due = append(due, h)
			renewals = append(renewals, sluice.Renewal{ID: h.claim.ID, Token: h.claim.Token, Lease: h.lease, Queue: h.claim.Queue})
		}
	}
	if len(renewals) == 0 {
		return held
	}
	lost, err := d.store.Renew(work, renewals)
	if err != nil {
		d.failed(work, "renew", "", err)
		return held
	}
	for _, l := range lanes {
		l.renewed(due, now)
		l.lose(lost)
	}
	return held - len(lost)
}

// renewed notes that the leases of what is held were looked at.
func (l *lane) renewed(holds []*hold, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		if l.held[h.claim.ID] == h {
			h.renewed = at
		}
	}
}

// lose notes that claims are lost. One that is being settled in this moment is let go by that.
func (l *lane) lose(ids []sluice.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if h := l.held[id]; h != nil && h.answer == nil && h.lost == "" {
			h.lost = "recovered, cancelled or settled by another"
		}
	}
}

// queues lists the queues that are served.
func (d *Dispatcher) queues() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.inUse))
}

func (d *Dispatcher) beat(work context.Context, held int) {
	holder := d.holder
	holder.Busy, holder.Queues, holder.Conditions = held, d.queues(), d.conditions()
	err := d.store.Beat(work, holder)
	switch {
	case err == nil:
		d.noteBeat()
	case work.Err() == nil:
		d.log.Tell(event.NotBeaten, "", "error", err)
	}
}
