package storetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// turnsQueue is where the bucket of the queue lies, beside those of its tenants.
const turnsQueue = "\x00queue"

// turnsBucket holds between low and top tokens. Rate and burst may have changed since it was last taken from;
// then any of those that a claim has seen may count.
type turnsBucket struct {
	low, top          float64
	fromLow, fromTop  time.Duration // it was last taken from between the two
	slowest, fastest  float64
	smallest, present float64 // bursts
}

// bucket gives a tenant's bucket, or the queue's; a new one is full.
func (m *turnsMachine) bucket(of string) *turnsBucket {
	b := m.buckets[of]
	if b == nil {
		b = &turnsBucket{low: math.Inf(1), top: math.Inf(1)}
		b.taken(0, 0, 0)
		m.buckets[of] = b
	}
	return b
}

// taken takes tokens, between two instants.
func (b *turnsBucket) taken(tokens int, before, after time.Duration) {
	b.low, b.top = b.low-float64(tokens), b.top-float64(tokens)
	b.fromLow, b.fromTop = before, after
	b.slowest, b.fastest, b.smallest, b.present = math.Inf(1), 0, math.Inf(1), math.Inf(1)
}

// seen notes what a claim goes by.
func (b *turnsBucket) seen(rate sluice.Rate, burst int) {
	if rate.IsZero() {
		return
	}
	b.present = rate.Tokens(burst)
	b.slowest, b.fastest = math.Min(b.slowest, rate.PerSecond()), math.Max(b.fastest, rate.PerSecond())
	b.smallest = math.Min(b.smallest, b.present)
}

// surely is how many tokens are there at least.
func (b *turnsBucket) surely(now time.Duration) float64 {
	return math.Min(b.smallest, b.low+b.slowest*(now-b.fromTop).Seconds())
}

// atMost is how many tokens may be there.
func (b *turnsBucket) atMost(now time.Duration) float64 {
	return math.Min(b.present, b.top+b.fastest*(now-b.fromLow).Seconds())
}

// changed notes that what is said of tenants has changed. A queue that begins to tell its tenants apart may
// begin with full buckets.
func (m *turnsMachine) changed(wasByTenant bool) {
	if wasByTenant == m.byTenant() {
		return
	}
	for of, b := range m.buckets {
		if of != turnsQueue {
			b.top = math.Inf(1)
		}
	}
}

// held counts what is in flight, by tenant and of the queue.
func (m *turnsMachine) held() map[string]int {
	held := make(map[string]int)
	for _, job := range m.jobs {
		if job.inFlight() {
			held[job.tenant]++
			held[turnsQueue]++
		}
	}
	return held
}

// checkClaimed looks that a claim got nothing that it should not have got.
func (m *turnsMachine) checkClaimed(jobs []*sluice.Claim, request sluice.ClaimRequest, before time.Duration) {
	after := m.clock()
	if len(jobs) > request.Limit || len(jobs) > 0 && m.settings.Paused {
		m.Fatalf("claimed %d jobs of %d; the queue is paused: %v", len(jobs), request.Limit, m.settings.Paused)
	}
	got := make(map[string]int)
	for _, c := range jobs {
		job := m.jobs[c.ID]
		if job.state != sluice.StateQueued || job.dueLow > after {
			m.Fatalf("claimed job %s, which is %s and due in %s", c.ID, job.state, job.dueLow-after)
		}
		job.state, job.token = sluice.StateClaimed, request.Token
		got[job.tenant]++
	}
	held := m.held()
	for _, tenant := range append([]string{""}, m.tenants...) {
		terms := m.terms(tenant, before)
		if got[tenant] > 0 && (m.terms(tenant, after).Paused || terms.Concurrency > 0 && held[tenant] > terms.Concurrency) {
			m.Fatalf("claimed %d jobs of tenant %q, of which now %d are in flight, by %+v", got[tenant], tenant, held[tenant], terms)
		}
		m.spend(tenant, got[tenant], terms.Rate, terms.Burst, before, after)
	}
	if limit := m.settings.Concurrency; len(jobs) > 0 && limit > 0 && held[turnsQueue] > limit {
		m.Fatalf("%d are in flight, %d may be", held[turnsQueue], limit)
	}
	m.spend(turnsQueue, len(jobs), m.settings.Rate, m.settings.Burst, before, after)
	m.started = append(m.started, turnsStart{after, len(jobs)})
}

// spend takes the tokens of a claim, which must be there.
func (m *turnsMachine) spend(of string, tokens int, rate sluice.Rate, burst int, before, after time.Duration) {
	b := m.bucket(of)
	b.seen(rate, burst)
	if rate.IsZero() || tokens == 0 {
		return
	}
	if most := b.atMost(after); float64(tokens) > most+1e-6 {
		m.Fatalf("claimed %d jobs of %q at %s with a burst of %g, for which there are %.3f tokens", tokens, of, rate, b.present, most)
	}
	b.low, b.top = b.surely(before), b.atMost(after)
	b.taken(tokens, before, after)
}

// checkNothingLeft looks that a claim which found nothing, and says to look again later, left nothing that may be
// claimed now, and told when it may.
func (m *turnsMachine) checkNothingLeft(now time.Duration, claimed sluice.Claimed) {
	held := m.held()
	if m.settings.Paused || !m.queueHasRoom(held[turnsQueue], now) {
		return
	}
	open := make(map[string]bool)
	for _, tenant := range append([]string{""}, m.tenants...) {
		open[tenant] = m.tenantHasRoom(tenant, held[tenant], now)
	}
	for id, job := range m.jobs {
		if job.state != sluice.StateQueued || !open[job.tenant] {
			continue
		}
		if soon := claimed.NextDue >= 0 && claimed.NextDue <= aLook; soon && m.terms(job.tenant, now).Concurrency > 0 {
			continue // not every end is told of a tenant who is far from the concurrency; the line is looked at again
		}
		if job.dueTop <= now {
			m.Fatalf("job %s of tenant %q may be claimed, but is not; look again in %s; %s", id, job.tenant, claimed.NextDue, m.waiting())
		}
		if wait := job.dueTop - now; claimed.NextDue < 0 || claimed.NextDue > wait+time.Second {
			m.Fatalf("job %s of tenant %q may be claimed in %s; the claim says to look again in %s; %s", id, job.tenant, wait, claimed.NextDue, m.waiting())
		}
	}
}

// aLook is how long a store may leave a line alone of which it was not told that there is room.
const aLook = time.Second

// aToken is more than one by what instants may differ.
const aToken = 1.01

func (m *turnsMachine) queueHasRoom(held int, now time.Duration) bool {
	if limit := m.settings.Concurrency; limit > 0 && held >= limit {
		return false
	}
	return m.settings.Rate.IsZero() || m.bucket(turnsQueue).surely(now) >= aToken && m.windowHasRoom(now)
}

// windowHasRoom reports whether the window of the queue's rate surely has room for a job. Starts count for a 256th longer.
func (m *turnsMachine) windowHasRoom(now time.Duration) bool {
	left, per := m.settings.Rate.Jobs+m.settings.Burst, m.settings.Rate.Per
	for _, s := range m.started {
		if now-s.at < per+per/256+time.Second {
			left -= s.jobs
		}
	}
	return left > 0
}

func (m *turnsMachine) tenantHasRoom(tenant string, held int, now time.Duration) bool {
	terms := m.terms(tenant, now)
	if terms.Paused || terms.Concurrency > 0 && held >= terms.Concurrency {
		return false
	}
	return terms.Rate.IsZero() || m.bucket(tenant).surely(now) >= aToken
}

// waiting tells of the jobs that wait, and of what counts for their tenants.
func (m *turnsMachine) waiting() string {
	var text strings.Builder
	fmt.Fprintf(&text, "settings %+v\n", m.settings)
	now, held := m.clock(), m.held()
	for _, tenant := range append([]string{""}, m.tenants...) {
		fmt.Fprintf(&text, "tenant %q: %+v, in flight %d, tokens %.3f, due in", tenant, m.terms(tenant, now), held[tenant], m.bucket(tenant).surely(now))
		for _, id := range m.order {
			if job := m.jobs[id]; job.tenant == tenant && job.state == sluice.StateQueued {
				fmt.Fprintf(&text, " %s", (job.dueTop - now).Round(time.Millisecond))
			}
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}
