package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
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
	for {
		held := d.renew(work)
		if time.Since(beaten) >= beatInterval {
			beaten = time.Now()
			d.beat(work, held)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// renew gives what is held more time, and notes what is lost.
func (d *Dispatcher) renew(work context.Context) (held int) {
	d.mu.Lock()
	lanes := make([]*lane, 0, len(d.lanes))
	for _, l := range d.lanes {
		lanes = append(lanes, l)
	}
	d.mu.Unlock()
	holds := make(map[sluice.ID]*hold)
	var renewals []sluice.Renewal
	for _, l := range lanes {
		for _, h := range l.holding(func(h *hold) bool { return !h.lost }) {
			holds[h.claim.ID] = h
			renewals = append(renewals, sluice.Renewal{ID: h.claim.ID, Token: h.claim.Token, Lease: h.lease})
		}
	}
	if len(renewals) == 0 {
		return 0
	}
	lost, err := d.store.Renew(work, renewals)
	if err != nil {
		d.failed(work, "renew", "", err)
		return len(renewals)
	}
	for _, l := range lanes {
		l.lose(lost)
	}
	return len(renewals) - len(lost)
}

// lose notes that claims are lost. One that is being settled in this moment is let go by that.
func (l *lane) lose(ids []sluice.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if h := l.held[id]; h != nil && h.answer == nil {
			h.lost = true
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
	holder.Busy, holder.Queues, holder.Trouble = held, d.queues(), d.trouble()
	if err := d.store.Beat(work, holder); err != nil && work.Err() == nil {
		d.options.Logger.Warn("heartbeat not written", "holder", holder.ID, "error", err)
	}
}
