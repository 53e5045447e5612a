package sim

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// serve serves tenants one batch after the other until no job waits. The function next picks the tenant of each batch.
// serve returns the ratio of each tenant's service to its fair share.
func serve(weights []float64, jobs []int, batch int, next func(left []*tenant) *tenant) []float64 {
	l := newQueue(Queue{Name: "q"}, func(string) standing { return standing{} })
	tenants := make([]*tenant, len(jobs))
	left := 0
	for i := range jobs {
		tenants[i] = l.tenant(string(rune('a' + i)))
		tenants[i].weight = weights[i]
		l.due(tenants[i], jobs[i], 0, 0)
		left += jobs[i]
	}
	for left > 0 {
		var claims []*sluice.Claim
		picked := make(map[*tenant]int)
		for range min(batch, left) {
			var waiting []*tenant
			for _, t := range tenants {
				if t.waiting > picked[t] {
					waiting = append(waiting, t)
				}
			}
			t := next(waiting)
			picked[t]++
			claims = append(claims, &sluice.Claim{Job: sluice.Job{Tenant: t.Tenant, DueAt: time.Unix(0, 0)}})
		}
		left -= len(claims)
		l.started(claims, make([]time.Duration, len(claims)), 0, time.Unix(0, 0))
	}
	parts := make([]float64, len(tenants))
	for i, t := range tenants {
		parts[i] = l.sharing.part(t)
	}
	return parts
}

func TestFairnessTellsWhoGotLessThanTheirShare(t *testing.T) {
	t.Parallel()
	first := func(left []*tenant) *tenant { return left[0] }
	turn := 0
	inTurn := func(left []*tenant) *tenant { turn++; return left[turn%len(left)] }
	for name, of := range map[string]struct {
		weights []float64
		jobs    []int
		next    func([]*tenant) *tenant
		low     float64
		high    float64
	}{
		"one before five others":       {[]float64{1, 1, 1, 1, 1, 1}, []int{1000, 1, 1, 1, 1, 1}, first, 0.16, 0.19},
		"all in turn":                  {[]float64{1, 1, 1, 1, 1, 1}, []int{1000, 1, 1, 1, 1, 1}, inTurn, 0.999, 1},
		"in turn where weights differ": {[]float64{1, 9}, []int{5000, 5000}, inTurn, 0.9, 0.95},
		"alone":                        {[]float64{1}, []int{50}, first, 1, 1},
	} {
		for _, batch := range []int{1, 10} {
			if got := jain(serve(of.weights, of.jobs, batch, of.next)); got < of.low || got > of.high {
				t.Errorf("%s, by %d: the index is %.3f, want %.3f to %.3f", name, batch, got, of.low, of.high)
			}
		}
	}
}

func TestFairnessAsksNothingOfWhoIsAtItsCapacity(t *testing.T) {
	t.Parallel()
	l := newQueue(Queue{Name: "q"}, func(name string) standing {
		return standing{weight: 1, concurrency: map[string]int{"capped": 1}[name]}
	})
	capped, other := l.tenant("capped"), l.tenant("other")
	l.due(capped, 100, 0, 0)
	l.due(other, 100, 0, 0)
	claim := func(name string) *sluice.Claim {
		return &sluice.Claim{Job: sluice.Job{Tenant: name, DueAt: time.Unix(0, 0)}}
	}
	l.started([]*sluice.Claim{claim("capped"), claim("other")}, make([]time.Duration, 2), 0, time.Unix(0, 0))
	for range 99 {
		l.started([]*sluice.Claim{claim("other")}, make([]time.Duration, 2), 0, time.Unix(0, 0))
	}
	if part := l.sharing.part(capped); part != 1 {
		t.Errorf("it got %.2f of its share", part)
	}
	if checks := l.checkTenants(); len(checks) != 1 || !checks[0].Holds {
		t.Errorf("%+v", checks)
	}
	l.started([]*sluice.Claim{claim("capped")}, make([]time.Duration, 1), 0, time.Unix(0, 0))
	if checks := l.checkTenants(); checks[0].Holds {
		t.Error("two in flight of a tenant who may have one were not seen")
	}
}

func TestPaceSeesStartsThatAreTooEarlyAndTokensThatAreLost(t *testing.T) {
	t.Parallel()
	p := newPace(sluice.RatePerSecond(10), 5, 10)
	start := func(at time.Duration, n int, waited bool) {
		p.fill(at, waited)
		p.take(n, at)
	}
	start(0, 5, true)
	start(100*time.Millisecond, 1, true)
	if p.over != 0 {
		t.Error("starts with a token each count as too early")
	}
	start(150*time.Millisecond, 1, true)
	if p.over != 1 {
		t.Error("a start without a token was not seen")
	}
	if p.windows[0].most != 7 {
		t.Errorf("7 starts in a second count as %d", p.windows[0].most)
	}
	start(2*time.Second, 1, true) // half a token was missing, 18.5 tokens came, and the burst keeps 5
	if want := 13.0; math.Abs(p.lost-want) > 1e-9 {
		t.Errorf("%.1f tokens were lost, want %.1f", p.lost, want)
	}
	if used := p.used(); math.Abs(used-8.0/21) > 1e-9 {
		t.Errorf("8 of 21 tokens are %.3f", used)
	}
	for i := range 10_000 { // the windows must still count after old starts are forgotten
		start(time.Hour+time.Duration(i)*time.Second, 1, false)
	}
	for _, w := range p.windows {
		if want := map[time.Duration]int{time.Second: 7, time.Minute: 60, time.Hour: 3600}[w.length]; w.most != want {
			t.Errorf("in %s there were at most %d, want %d", w.length, w.most, want)
		}
	}
	if len(p.starts) > 9000 {
		t.Errorf("%d starts are remembered", len(p.starts))
	}
}

func TestEventsComeInOrder(t *testing.T) {
	t.Parallel()
	var h events
	for i := range 1000 {
		h.add(time.Duration(i*7919%101), i%3 == 0, nil)
	}
	last, _ := h.take()
	for n := 1; ; n++ {
		e, more := h.take()
		if !more {
			if n != 1000 {
				t.Errorf("%d events came", n)
			}
			return
		}
		if e.before(last) {
			t.Fatalf("%+v came after %+v", e, last)
		}
		last = e
	}
}
