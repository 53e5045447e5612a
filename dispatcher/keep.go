package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/presence"
)

const (
	// keepInterval is how often the dispatcher checks the leases of held jobs.
	keepInterval = time.Second
	// beatInterval is how often the dispatcher writes its heartbeat to the store.
	beatInterval = 5 * time.Second
)

// keep renews the leases of held jobs and writes heartbeats, until ctx ends.
func (d *Dispatcher) keep(ctx, work context.Context) {
	ticker := time.NewTicker(keepInterval)
	defer ticker.Stop()
	beaten := time.Now() // by Run
	var told []presence.Condition
	for {
		held := d.renew(work)
		d.reportBegun(work, keepInterval)
		// A change of the dispatcher's conditions is written at once.
		if now := d.conditions(); time.Since(beaten) >= beatInterval || !slices.Equal(now, told) {
			beaten, told = time.Now(), now
			d.beat(work, held)
		}
		select {
		case <-ctx.Done():
			return
		case <-d.ear.Changed():
			beaten = time.Time{} // others wait to see the new mode
		case <-ticker.C:
		}
	}
}

// renew extends leases of held jobs once a third is gone, and notes lost claims. Jobs in doubt are checked each
// time, because a person may have ended them. held is how many jobs are held.
func (d *Dispatcher) renew(work context.Context) (held int) {
	d.mu.Lock()
	serving := slices.Collect(maps.Values(d.serving))
	d.mu.Unlock()
	now := time.Now() // taken before the request to the store
	var due []*hold
	var renewals []sluice.Renewal
	for _, l := range serving {
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
	for _, l := range serving {
		l.renewed(due, now)
		l.lose(lost)
	}
	return held - len(lost)
}

// renewed notes that the leases of held jobs were checked.
func (l *servedQueue) renewed(holds []*hold, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		if l.held[h.claim.ID] == h {
			h.renewed = at
		}
	}
}

// lose notes lost claims. A claim that is being settled right now ends with its settlement.
func (l *servedQueue) lose(ids []sluice.ID) {
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
	holder.Busy, holder.Queues, holder.Conditions, holder.Mode = held, d.queues(), d.conditions(), d.ear.Mode()
	told, err := presence.Given(d.store).Heartbeat(work, holder)
	switch {
	case err == nil:
		d.noteBeat()
		d.ear.Hear(told)
	case work.Err() == nil:
		d.log.Emit(event.HeartbeatFailed, "", "error", err)
	}
}
