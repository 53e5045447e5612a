package flow_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// TestBehindIsBehindTheMarkHoweverFarTheTurnsAre goes beyond the turns of 2^33 jobs, where a fixed step is lost by
// rounding. A tenant queue that wakes would then stand before the mark, and no claim would find it.
func TestBehindIsBehindTheMarkHoweverFarTheTurnsAre(t *testing.T) {
	t.Parallel()
	for turn := 1.0; turn < 1<<53; turn *= 2 {
		if mark := (flow.LowWater{VirtualStart: turn, Tenant: "z"}); mark.Behind() <= mark.VirtualStart {
			t.Fatalf("behind %g is %g", mark.VirtualStart, mark.Behind())
		}
	}
}

// queue is a queue in memory with due jobs of tenants. The jobs of locked tenants are stored, but a claim cannot get
// them.
type queue struct {
	lines  map[string]*flow.TenantQueue
	due    map[string]int
	locked map[string]bool
	mark   flow.LowWater
	width  flow.Width
	now    time.Time
	got    map[string]int
}

func newQueue() *queue {
	return &queue{
		lines: make(map[string]*flow.TenantQueue), due: make(map[string]int), locked: make(map[string]bool),
		now: time.Unix(1_800_000_000, 0), got: make(map[string]int),
	}
}

// add adds due jobs of a tenant, and wakes the tenant's queue.
func (q *queue) add(tenant string, jobs int, terms sluice.EffectiveLimits) {
	terms.Weight = max(terms.Weight, 1)
	l := q.lines[tenant]
	if l == nil {
		l = &flow.TenantQueue{Tenant: tenant}
		q.lines[tenant] = l
	}
	q.due[tenant] += jobs
	l.EffectiveLimits, l.Jobs = terms, 1<<5
	l.Wake(q.mark)
}

func (q *queue) claim(t *testing.T, jobs int) map[string]int {
	t.Helper()
	q.got = make(map[string]int)
	for _, l := range q.lines {
		if !l.Active && !l.WakeAt.IsZero() && !l.WakeAt.After(q.now) {
			l.Wake(q.mark)
		}
	}
	var err error
	if q.mark, err = flow.Serve(jobs, q.mark, q.now, 0, &q.width, q); err != nil {
		t.Fatal(err)
	}
	return q.got
}

func (q *queue) First(mark flow.LowWater, limit int) ([]*flow.TenantQueue, error) {
	var active []*flow.TenantQueue
	for _, l := range q.lines {
		if l.Active && cmp.Or(cmp.Compare(l.VirtualStart, mark.VirtualStart), cmp.Compare(l.Tenant, mark.Tenant)) >= 0 {
			active = append(active, l)
		}
	}
	slices.SortFunc(active, func(a, b *flow.TenantQueue) int {
		return cmp.Or(cmp.Compare(a.VirtualStart, b.VirtualStart), cmp.Compare(a.Tenant, b.Tenant))
	})
	return active[:min(limit, len(active))], nil
}

func (q *queue) Claim(lines []*flow.TenantQueue) error {
	for _, l := range lines {
		if !q.locked[l.Tenant] {
			l.Got = min(l.Share, q.due[l.Tenant])
		}
		q.due[l.Tenant] -= l.Got
		q.got[l.Tenant] += l.Got
	}
	return nil
}

func (q *queue) Look(lines []*flow.TenantQueue) error {
	for _, l := range lines {
		l.Jobs, l.NextDue = 0, time.Time{}
		if q.due[l.Tenant] > 0 {
			l.Jobs, l.NextDue = 1<<5, q.now
		}
	}
	return nil
}

func (q *queue) Keep([]*flow.TenantQueue) error { return nil }

// TestTenantQueueWithoutTokensLooksAgainWhenItsLimitsEnd gives a tenant a rate of its own for a minute. By that rate,
// the next token would come after an hour.
func TestTenantQueueWithoutTokensLooksAgainWhenItsLimitsEnd(t *testing.T) {
	t.Parallel()
	q := newQueue()
	end := q.now.Add(time.Minute)
	q.add("a", 9, sluice.EffectiveLimits{Rate: sluice.RatePerSecond(1.0 / 3600), Burst: 1, Until: end})
	if got := q.claim(t, 5); got["a"] != 1 {
		t.Fatalf("claimed %v, want 1", got)
	}
	if at := q.lines["a"].WakeAt; at.After(end) || at.IsZero() {
		t.Errorf("the tenant queue sleeps until %s, want %s", at, end)
	}
}

// TestTenantQueueWhoseJobIsLockedDoesNotHoldOthersBack claims one job at a time, while somebody else locks the row of
// the first tenant's only job.
func TestTenantQueueWhoseJobIsLockedDoesNotHoldOthersBack(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.locked["a"] = true
	q.add("a", 1, sluice.EffectiveLimits{})
	q.add("b", 5, sluice.EffectiveLimits{})
	for range 5 {
		if got := q.claim(t, 1); got["b"] != 1 {
			t.Fatalf("claimed %v, want 1 of b", got)
		}
	}
}

// TestSmallClaimPassesOverManyTenantQueuesWithoutRoom wakes all tenant queues at once, as a changed limit does.
func TestSmallClaimPassesOverManyTenantQueuesWithoutRoom(t *testing.T) {
	t.Parallel()
	q := newQueue()
	for n := range 300 {
		q.add(fmt.Sprintf("full %d", n), 5, sluice.EffectiveLimits{Paused: true})
	}
	q.add("other", 5, sluice.EffectiveLimits{})
	if got := q.claim(t, 1); got["other"] != 1 {
		t.Errorf("claimed %v, want 1 of the other", got)
	}
}

// TestOneAloneOwesNothingForIt lets a tenant use the queue while no other tenant has work. The jobs of that time must
// not count against the tenant once another tenant comes.
func TestOneAloneOwesNothingForIt(t *testing.T) {
	t.Parallel()
	q := newQueue()
	q.add("a", 500, sluice.EffectiveLimits{})
	q.claim(t, 1000)
	q.add("a", 1000, sluice.EffectiveLimits{})
	q.add("b", 1000, sluice.EffectiveLimits{})
	if got := q.claim(t, 100); got["a"] < 45 {
		t.Errorf("claimed %v, want about the same of each", got)
	}
}

// TestOnlyTenantQueuesOfWhichNothingIsLostAreSpare changes one property of a tenant queue at a time.
func TestOnlyTenantQueuesOfWhichNothingIsLostAreSpare(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	slow := sluice.EffectiveLimits{Rate: sluice.RatePerSecond(0.01), Burst: 3}
	bucket := func(tokens float64, ago time.Duration) flow.Bucket {
		return flow.Bucket{Tokens: tokens, FilledAt: now.Add(-ago)}
	}
	for name, c := range map[string]struct {
		line      flow.TenantQueue
		spare     bool
		otherwise bool // the tenant queue is in a queue that does not serve tenants in turns
	}{
		"asleep":                          {flow.TenantQueue{VirtualStart: 4}, true, true},
		"where one would stand that woke": {flow.TenantQueue{VirtualStart: flow.LowWater{VirtualStart: 5}.Behind()}, true, true},
		"ahead":                           {flow.TenantQueue{VirtualStart: 5.5}, false, true},
		"active":                          {flow.TenantQueue{Active: true}, false, true},
		"at its concurrency":              {flow.TenantQueue{Full: true}, false, true},
		"wakes later":                     {flow.TenantQueue{WakeAt: now.Add(time.Hour)}, false, true},
		"some tokens are used":            {flow.TenantQueue{EffectiveLimits: slow, Bucket: bucket(1, 100*time.Second)}, false, false},
		"all tokens are back":             {flow.TenantQueue{EffectiveLimits: slow, Bucket: bucket(1, 200*time.Second)}, true, true},
		"the rate was lifted":             {flow.TenantQueue{Bucket: bucket(1, 23*time.Hour)}, false, false},
		"the rate was lifted long ago":    {flow.TenantQueue{Bucket: bucket(1, 25*time.Hour)}, true, true},
		"the rate is for a while":         {flow.TenantQueue{EffectiveLimits: sluice.EffectiveLimits{Rate: sluice.RatePerSecond(9), Burst: 1, Until: now.Add(time.Hour)}, Bucket: bucket(1, time.Hour)}, false, false},
	} {
		mark := flow.LowWater{VirtualStart: 5}
		if got := c.line.Spare(mark, true, now); got != c.spare {
			t.Errorf("%s: %t in a queue of turns, want %t", name, got, c.spare)
		}
		if got := c.line.Spare(mark, false, now); got != c.otherwise {
			t.Errorf("%s: %t in another, want %t", name, got, c.otherwise)
		}
	}
}
