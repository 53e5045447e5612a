package sim

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// tally counts the jobs of a queue, or of a tier or a tenant in it.
type tally struct {
	jobs, starts, completed, dead, failed int
	refused                               int // by a full queue; not among the jobs
	unfinished                            int
	waiting                               int // due, and not started
	inFlight, peak                        int
	firstDue, lastDue, lastEnd            time.Duration
}

func (t *tally) arrived(n int, due time.Duration) {
	if t.jobs == 0 || due < t.firstDue {
		t.firstDue = due
	}
	t.jobs += n
	t.unfinished += n
	t.lastDue = max(t.lastDue, due)
}

// queued counts the jobs that wait, due or not.
func (t *tally) queued() int { return t.unfinished - t.inFlight }

func (t *tally) started() {
	t.starts++
	t.waiting--
	t.inFlight++
	t.peak = max(t.peak, t.inFlight)
}

func (t *tally) settled(event sluice.Event, now time.Duration) {
	t.inFlight--
	if event != sluice.EventComplete {
		t.failed++
	}
	switch event {
	case sluice.EventComplete:
		t.completed++
	case sluice.EventBury:
		t.dead++
	default:
		return
	}
	t.unfinished--
	t.lastEnd = now
}

// tenant is the account of a tenant in a queue.
type tenant struct {
	tally
	standing
	Tenant string
	inTier *tally

	waits []time.Duration       // of each start: the time since it was due
	dues  map[time.Duration]int // by due time: how many jobs wait
	pace  *pace                 // nil: the tenant has no rate
	share share
}

// queue is the account of a queue.
type queue struct {
	tally
	name      string
	settings  sluice.Settings
	slots     int // of the processes that serve it
	standings func(string) standing
	tenants   map[string]*tenant
	order     []*tenant // in the order of their first jobs
	tiers     map[string]*tally
	tierOrder []string
	pace      *pace // nil: the queue has no rate
	sharing   sharing

	running int // in slots
	busy    time.Duration
	busyAt  time.Duration // until when busy is counted
}

func newQueue(q Queue, standings func(string) standing) *queue {
	l := &queue{name: q.Name, settings: q.Settings, standings: standings, tenants: make(map[string]*tenant), tiers: make(map[string]*tally)}
	if !q.Settings.Rate.IsZero() {
		l.pace = newPace(q.Settings.Rate, flow.Burst(q.Settings), flow.Filling(q.Settings))
	}
	return l
}

// tenant returns the account of a tenant, and creates it if it is missing.
func (l *queue) tenant(name string) *tenant {
	t := l.tenants[name]
	if t != nil {
		return t
	}
	t = &tenant{standing: l.standings(name), Tenant: name, dues: make(map[time.Duration]int)}
	if !t.rate.IsZero() {
		t.pace = newPace(t.rate, t.burst, t.rate.PerSecond())
	}
	t.inTier = l.tiers[t.tier]
	if t.inTier == nil {
		t.inTier = new(tally)
		l.tiers[t.tier] = t.inTier
		l.tierOrder = append(l.tierOrder, t.tier)
	}
	l.tenants[name], l.order = t, append(l.order, t)
	return t
}

// each applies a function to the three accounts of a tenant's job: queue, tier and tenant.
func (l *queue) each(t *tenant, do func(*tally)) {
	do(&l.tally)
	do(t.inTier)
	do(&t.tally)
}

func (l *queue) arrived(t *tenant, n int, due time.Duration) {
	l.each(t, func(x *tally) { x.arrived(n, due) })
}

// fits reports whether another job of a tenant may wait, after those that the same call has for the queue and for the tenant.
func (l *queue) fits(t *tenant, inCall, ofTenant int) bool {
	most, each := l.settings.MaxWaiting, l.settings.TenantMaxWaiting
	return (most == 0 || l.queued()+inCall < most) && (each == 0 || t.Tenant == "" || t.queued()+ofTenant < each)
}

// refuse records that the queue was too full for a job.
func (l *queue) refuse(t *tenant) { l.each(t, func(x *tally) { x.refused++ }) }

// due records that jobs of a tenant fell due.
func (l *queue) due(t *tenant, n int, due, now time.Duration) {
	l.fill(now)
	l.each(t, func(x *tally) { x.waiting += n })
	t.dues[due] += n
	l.sharing.see(t)
}

// fill adds the tokens of a rate up to now. Tokens that overflow while jobs wait count as lost.
func (l *queue) fill(now time.Duration) {
	if l.pace != nil {
		l.pace.fill(now, l.waiting > 0)
	}
}

// started records that jobs were claimed, each of which starts so much later, and returns the tenant of each.
func (l *queue) started(claims []*sluice.Claim, late []time.Duration, now time.Duration, start time.Time) []*tenant {
	l.fill(now)
	if l.pace != nil {
		l.pace.take(len(claims), now)
	}
	l.slotsTaken(len(claims), now)
	tenants := make([]*tenant, len(claims))
	for i, c := range claims {
		t := l.tenant(c.Tenant)
		tenants[i] = t
		due := c.DueAt.Sub(start)
		t.waits = append(t.waits, now+late[i]-due)
		if t.dues[due]--; t.dues[due] == 0 {
			delete(t.dues, due)
		}
		l.each(t, (*tally).started)
		if t.pace != nil {
			t.pace.fill(now, false)
			t.pace.take(1, now)
		}
	}
	l.sharing.started(tenants)
	return tenants
}

// stopped records that a job's slot is free. settled records that the store knows the job's
// outcome.
func (l *queue) stopped(now time.Duration) { l.slotsTaken(-1, now) }

func (l *queue) settled(t *tenant, event sluice.Event, now time.Duration) {
	l.each(t, func(x *tally) { x.settled(event, now) })
	l.sharing.see(t)
}

func (l *queue) slotsTaken(n int, now time.Duration) {
	l.busy += time.Duration(l.running) * (now - l.busyAt)
	l.busyAt = now
	l.running += n
}
