package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/internal/feature"
)

// laterFlow is how a queue lets jobs through from an instant on, since a scheduled change changes its settings then.
type laterFlow struct {
	at     float64 // in seconds after the count
	limits []flowLimit
	lines  []tenantLine
}

// ahead is a queue as its scheduled changes will make it.
type ahead struct {
	versions []sluice.Queue
	err      error // they cannot be read
}

// followed is how far ahead a forecast follows scheduled changes. A backlog may last longer than the horizon.
const followed = 2 * Horizon

// aheadOf follows the scheduled changes of a queue.
func aheadOf(q sluice.Queue, now time.Time) (a ahead) {
	q.Now = now
	a.versions, a.err = changes.Ahead(q, now.Add(followed))
	for n := len(a.versions); n > 0; n-- {
		last := a.versions[n-1]
		if !last.Settings.PausedAt(last.Now) || last.Now.Before(now.Add(Horizon)) {
			break
		}
		a.versions = a.versions[:n-1] // the pause of some later night, which ends like the others
	}
	return a
}

// addLater adds what scheduled changes change. Whether the queue serves its tenants in turns is taken to stay as it is.
func (f *queueFlow) addLater(ctx context.Context, store sluice.Store, around surroundings, q sluice.Queue, a ahead, counted QueueCounts, of crowd, terms map[string]sluice.EffectiveLimits, until time.Time) error {
	if a.err != nil {
		f.notes = append(f.notes, "its scheduled changes are left out: "+a.err.Error())
	}
	if counted.CountedAt.IsZero() {
		return nil
	}
	f.noteChanges(q.Settings, a.versions, until)
	before := q.Settings
	for _, version := range a.versions {
		version.ByTenant = q.ByTenant
		if s := version.Settings; s.TenantConcurrency != before.TenantConcurrency || s.TenantRate != before.TenantRate || s.TenantBurst != before.TenantBurst {
			var err error
			if terms, err = termsOf(ctx, store, version, of.names, around.now); err != nil {
				return err
			}
		}
		before = version.Settings
		next := around.flowOf(version, counted, version.Now)
		next.addLines(version, counted, of, terms)
		f.later = append(f.later, laterFlow{math.Max(0, version.Now.Sub(counted.CountedAt).Seconds()), next.limits, next.lines})
	}
	return nil
}

// flowSettings are the settings that a forecast obeys.
var flowSettings = []string{
	"rate", "burst", "concurrency", "batch", "interval", "limits", "paused", "paused_until", "tenant_concurrency", "tenant_rate", "tenant_burst",
}

// maxNoted is the most scheduled changes that a note names.
const maxNoted = 4

// noteChanges says which scheduled changes the forecast obeys before an instant.
func (f *queueFlow) noteChanges(before sluice.Settings, versions []sluice.Queue, until time.Time) {
	var said []string
	for _, version := range versions {
		if text := changed(before, version.Settings); text != "" && version.Now.Before(until) {
			said = append(said, text+" from "+feature.InstantText(version.Now))
		}
		before = version.Settings
	}
	if more := len(said) - maxNoted; more > 0 {
		said = append(said[:maxNoted], fmt.Sprintf("and %d more", more))
	}
	if len(said) > 0 {
		f.notes = append(f.notes, "the forecast obeys scheduled changes: "+strings.Join(said, ", "))
	}
}

// changed writes the settings that a change changes, of those that a forecast obeys.
func changed(before, after sluice.Settings) string {
	var parts []string
	for _, s := range sluice.AllSettings() {
		if value := s.Format(after); value != s.Format(before) && slices.Contains(flowSettings, s.Name) {
			parts = append(parts, s.Name+"="+value)
		}
	}
	return strings.Join(parts, " ")
}

// mostStarts returns how many jobs the limits of the whole queue let start between two instants, in seconds after the count.
func (f queueFlow) mostStarts(from, to float64) float64 {
	most := 0.0
	spans := append([]laterFlow{{limits: f.limits}}, f.later...)
	for i, span := range spans {
		rate, end := math.Inf(1), to
		for _, l := range span.limits {
			rate = math.Min(rate, l.rate)
		}
		if i+1 < len(spans) {
			end = math.Min(to, spans[i+1].at)
		}
		if took := end - math.Max(from, span.at); took > 0 {
			most += rate * took
		}
	}
	return most
}

// change replaces the limits of the queue and its lines by later ones.
func (d *drainage) change(next laterFlow) {
	d.changed = true
	d.limits = carried(d.limits, next.limits)
	for i, l := range d.lines {
		if !l.active {
			refill(l.limits, 0, math.Min(d.now-l.idle, longTime))
			l.idle = d.now
		}
		l.limits = carried(l.limits, next.lines[i].limits)
		l.weight, l.opens = next.lines[i].weight, next.lines[i].opens
	}
}

// carried returns limits that replace others of the same names, with the tokens that are left. Jobs in flight keep their places.
// A new rate begins with its burst; a new limit of jobs in flight without a place, because nobody knows how many there are.
func carried(before, after []flowLimit) []flowLimit {
	out := slices.Clone(after)
	for i := range out {
		l := &out[i]
		at := slices.IndexFunc(before, func(b flowLimit) bool { return b.name == l.name })
		switch {
		case at >= 0 && l.places:
			l.tokens = math.Min(math.Max(0, before[at].tokens+l.burst-before[at].burst), l.burst)
		case at >= 0:
			l.tokens = math.Min(before[at].tokens, l.burst)
		case l.places:
			l.tokens = 0
		default:
			l.tokens = l.burst
		}
	}
	return out
}
