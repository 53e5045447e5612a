package flow_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// aStart is the start of one job: when it started by real time, and the rule under which it was claimed.
type aStart struct {
	at   time.Time
	rule int
}

// pacing is a queue with a rate. Its holders claim, begin jobs when they like, report starts late or never, and crash.
// The store's clock may be set back and forward.
type pacing struct {
	t        *rapid.T
	settings sluice.Settings
	rules    []sluice.Settings
	now      time.Time       // the real time
	behind   time.Duration   // how far the store's clock is behind the real time
	ahead    time.Duration   // how far ahead processes have found the store's clock to be set
	readings [2]flow.Reading // readings of the processes that claim
	bucket   flow.Bucket
	window   flow.Window
	forwards []time.Time // when the store's clock was set forward
	holds    []*aHold
	starts   []aStart
}

// aHold is the state of one claim of a holder.
type aHold struct {
	held  int // jobs that are not settled: running and waiting jobs
	begun sluice.Begun
	wait  int
	from  time.Time // before which no job begins
	last  time.Time
	rule  int
}

func (p *pacing) clock() time.Time { return p.now.Add(-p.behind) }

// claim claims as many jobs as the rate allows, up to most, and reports the starts of some earlier claims.
func (p *pacing) claim(most int) int {
	now := p.clock()
	asked := p.now
	if rapid.IntRange(0, 3).Draw(p.t, "the answer takes long") == 0 {
		p.now = p.now.Add(time.Millisecond)
	}
	one := &p.readings[rapid.IntRange(0, len(p.readings)-1).Draw(p.t, "process")]
	back := p.bucket.SetBack(now)
	p.window.SetBack(back, now)
	p.ahead -= back
	reading := flow.Reading{StoreTime: now, Asked: asked, Answered: p.now, Ahead: p.ahead}
	forward, unheard := one.Stepped(reading)
	p.window.SetForward(forward, now)
	p.ahead += forward - unheard
	reading.Ahead = p.ahead
	*one = reading
	var told []sluice.Begun
	for _, h := range p.holds {
		if rapid.IntRange(0, 2).Draw(p.t, "tells") > 0 {
			h.begun.Ago = asked.Sub(h.last)
			told = append(told, h.begun)
		}
	}
	p.window.Hear(told, p.settings, now)
	for _, permit := range p.window.Overdue(now) {
		held := 0
		for _, h := range p.holds {
			if h.begun.Token == permit.Token {
				held = h.held
			}
		}
		p.window.Held(permit, held, p.settings, now, time.Second)
	}
	p.window.Forget(now.Add(-flow.Kept(p.settings)))
	p.bucket = p.bucket.Filled(p.settings, now)
	ahead := time.Duration(rapid.IntRange(0, 15).Draw(p.t, "ahead")) * time.Millisecond
	jobs := flow.RoomWithin(most, p.settings, p.bucket, &p.window, now, 0, ahead).Jobs
	jobs = min(jobs, rapid.IntRange(1, 600).Draw(p.t, "due"))
	if jobs > 0 {
		hold := p.window.UntilFree(jobs, p.settings, p.bucket, now)
		if hold > ahead {
			p.t.Fatalf("a claim that may wait %s has to wait %s", ahead, hold)
		}
		request := sluice.ClaimRequest{Token: sluice.NewToken(), Lease: 2 * time.Second, ReportsBegun: true}
		p.bucket = p.bucket.Take(jobs)
		p.window.Take(request, jobs, p.settings, now, now)
		p.holds = append(p.holds, &aHold{held: jobs, wait: jobs, from: asked.Add(hold), begun: sluice.Begun{Token: request.Token}, rule: len(p.rules) - 1})
	}
	return jobs
}

// begin starts some jobs of a claim, or hands them back.
func (p *pacing) begin(h *aHold, jobs int, back bool) {
	jobs = min(jobs, h.wait)
	h.wait -= jobs
	if p.now.Before(h.from) && !back {
		p.now = h.from
	}
	if back {
		h.begun.Gone += jobs
		h.held -= jobs
		return
	}
	h.begun.Jobs += jobs
	h.last = p.now
	for range jobs {
		p.starts = append(p.starts, aStart{p.now, len(p.rules) - 1})
	}
}

// unnoticed returns by how much the clock may have been set forward between two instants without any process noticing
// it.
func (p *pacing) unnoticed(since, until time.Time) (sum time.Duration) {
	for _, at := range p.forwards {
		if !at.Before(since) && !at.After(until) {
			sum += 15 * time.Millisecond
		}
	}
	return sum
}

// check counts the starts in every window of the newest rule that ends with a start.
func (p *pacing) check(since time.Time) {
	s := p.settings
	for i, last := range p.starts {
		if last.at.Before(since) {
			continue
		}
		n := 0
		window := s.Rate.Per - p.unnoticed(last.at.Add(-s.Rate.Per), last.at)
		for _, other := range p.starts[:i+1] {
			if other.at.After(last.at.Add(-window)) {
				n++
			}
		}
		if n > s.Rate.Jobs+s.Burst {
			p.t.Fatalf("%d jobs started in the %s before %s, and %s with a burst of %d allows %d", n, s.Rate.Per, last.at, s.Rate, s.Burst, s.Rate.Jobs+s.Burst)
		}
	}
}

// TestNoWindowHasMoreStartsThanTheRate claims, begins late, hands back, crashes, and reports late, twice or never. It
// also sets the store's clock. Then it checks every window of starts by real time.
func TestNoWindowHasMoreStartsThanTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &pacing{t: t, settings: sluice.DefaultSettings(), now: time.UnixMicro(1_800_000_000_000_000)}
		p.settings.Rate = rapid.SampledFrom([]sluice.Rate{{Jobs: 1, Per: time.Second}, {Jobs: 5, Per: time.Second}, {Jobs: 60, Per: 5 * time.Second}, {Jobs: 400, Per: time.Second}}).Draw(t, "rate")
		p.settings.Burst = rapid.SampledFrom([]int{0, 0, 3, 500}).Draw(t, "burst")
		p.rules = append(p.rules, p.settings)
		since := p.now
		acts := []string{"claim", "claim", "claim", "claim", "begin", "begin", "begin", "back", "end", "crash", "rule"}
		if rapid.IntRange(0, 2).Draw(t, "the clock is set back") == 0 {
			acts = append(acts, "clock")
		}
		forward := rapid.IntRange(0, 2).Draw(t, "the clock is set forward") == 0
		if forward {
			acts = append(acts, "forward")
			p.readings = [2]flow.Reading{{StoreTime: p.clock(), Asked: p.now, Answered: p.now}, {StoreTime: p.clock(), Asked: p.now, Answered: p.now}} // each process has claimed once
		}
		for range rapid.IntRange(40, 200).Draw(t, "steps") {
			p.now = p.now.Add(time.Duration(rapid.Int64Range(0, int64(p.settings.Rate.Per)/4000).Draw(t, "pause")) * time.Microsecond)
			switch what := rapid.SampledFrom(acts).Draw(t, "what"); what {
			case "claim":
				p.claim(rapid.IntRange(1, 600).Draw(t, "most"))
			case "clock":
				p.behind += time.Duration(rapid.Int64Range(0, 5_000_000).Draw(t, "set back")) * time.Microsecond
			case "forward":
				p.forwards = append(p.forwards, p.now)
				p.behind -= time.Duration(rapid.Int64Range(0, 20_000_000).Draw(t, "set forward")) * time.Microsecond
			case "rule": // jobs that were claimed under the rule before begin under it, and the new rule counts them
				p.check(since)
				held := 0
				for _, h := range p.holds {
					held += h.wait
				}
				if held == 0 && len(p.starts) > 0 {
					// fewer jobs a window: the starts so far may exceed the new limit, and then none is added
					p.settings.Rate.Jobs = max(1, p.settings.Rate.Jobs/2)
					p.rules, since = append(p.rules, p.settings), p.now.Add(time.Microsecond)
				}
			default:
				if len(p.holds) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(p.holds)-1).Draw(t, "of")
				h := p.holds[i]
				switch what {
				case "begin", "back":
					p.begin(h, rapid.IntRange(1, 300).Draw(t, "jobs"), what == "back")
				case "end":
					h.held = max(h.wait, h.held-rapid.IntRange(1, 10).Draw(t, "jobs"))
				case "crash": // others recover the jobs after the lease, and nobody reports their starts
					p.holds = slices.Delete(p.holds, i, i+1)
				}
			}
		}
		p.check(since)
	})
}

// TestRateIsMadeUseOf claims after the wait that the rate gives, begins jobs when the claim has ended, and reports the
// starts with the next claim.
func TestRateIsMadeUseOf(t *testing.T) {
	t.Parallel()
	const late, took = 3 * time.Millisecond, 5 * time.Millisecond // the delay of each claim, as by timers, and its time
	for _, rate := range []sluice.Rate{{Jobs: 50, Per: time.Second}, {Jobs: 100, Per: time.Second}, {Jobs: 500, Per: 5 * time.Second}, {Jobs: 2000, Per: time.Second}, {Jobs: 6000, Per: time.Minute}} {
		s := sluice.DefaultSettings()
		s.Rate = rate
		var ahead flow.Ahead
		ahead.Took(took)
		origin := time.UnixMicro(1_800_000_000_000_000)
		now := origin
		var bucket flow.Bucket
		var window flow.Window
		var told []sluice.Begun
		var begun []time.Time
		jobs, claims, first := 0, 0, 0
		for now.Before(origin.Add(10 * rate.Per)) {
			for i := range told {
				told[i].Ago = now.Sub(begun[i])
			}
			window.Hear(told, s, now)
			window.Forget(now.Add(-rate.Per))
			bucket = bucket.Filled(s, now)
			request := sluice.ClaimRequest{Token: sluice.NewToken(), Lease: time.Minute, ReportsBegun: true}
			room := flow.RoomWithin(1_000_000, s, bucket, &window, now, 0, ahead.Of(request))
			told, begun = nil, nil
			hold := time.Duration(0)
			if room.Jobs > 0 {
				hold = max(took, window.UntilFree(room.Jobs, s, bucket, now))
				bucket = bucket.Take(room.Jobs)
				window.Take(request, room.Jobs, s, now, now)
				told = append(told, sluice.Begun{Token: request.Token, Jobs: room.Jobs})
				begun = append(begun, now.Add(hold))
			}
			jobs, claims = jobs+room.Jobs, claims+1
			if now.Before(origin.Add(rate.Per)) {
				first += room.Jobs
			}
			now = now.Add(max(room.Wait+late, hold+time.Millisecond))
		}
		used := float64(jobs-first) / float64(9*rate.Jobs)
		t.Logf("%s: %.2f %% with %.1f jobs a claim, which takes 5 ms", rate, 100*used, float64(jobs)/float64(claims))
		if used < 0.98 {
			t.Errorf("%s: %.2f %% of the rate is made use of", rate, 100*used)
		}
	}
}

// TestJobHandedBackDoesNotStandForALaterStart hands a job back, and the store looks at the claim before it is told so. The
// other job then begins much later.
func TestJobHandedBackDoesNotStandForALaterStart(t *testing.T) {
	t.Parallel()
	s := sluice.DefaultSettings()
	s.Rate = sluice.Rate{Jobs: 2, Per: time.Second}
	now := time.Unix(1_800_000_000, 0)
	request := sluice.ClaimRequest{Token: sluice.NewToken(), Lease: time.Second, ReportsBegun: true}
	var window flow.Window
	permit, _ := window.Take(request, 2, s, now, now)
	now = now.Add(10 * time.Second)
	window.Held(permit, 1, s, now, time.Second)
	now = now.Add(10 * time.Second)
	window.Hear([]sluice.Begun{{Token: request.Token, Jobs: 1, Gone: 1}}, s, now)
	window.Forget(now.Add(-s.Rate.Per))
	if room := flow.RoomFor(2, s, flow.Bucket{Tokens: 2}, &window, now, 0); room.Jobs != 1 {
		t.Errorf("a claim gets %d jobs just after a start, and the rate allows 1 more", room.Jobs)
	}
}

// TestStepForwardAfterAStepBackIsFoundByEveryProcess sets the clock back and forward, and one process reads it only before
// and after both steps.
func TestStepForwardAfterAStepBackIsFoundByEveryProcess(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1_800_000_000, 0)
	reading := func(passed, stepped, ahead time.Duration) flow.Reading {
		at := begun.Add(passed)
		return flow.Reading{StoreTime: at.Add(stepped), Asked: at, Answered: at, Ahead: ahead}
	}
	one, other := reading(0, 0, 0), reading(0, 0, 0)
	forward, back := one.Stepped(reading(time.Second, -700*time.Millisecond, 0))
	if forward != 0 || back < 700*time.Millisecond || back > 720*time.Millisecond {
		t.Fatalf("the step back by 700 ms looks like %s back and %s forward", back, forward)
	}
	forward, back = other.Stepped(reading(2*time.Second, 800*time.Millisecond, -back))
	if back != 0 || forward < 1480*time.Millisecond || forward > 1520*time.Millisecond {
		t.Errorf("the step forward by 1.5 s looks like %s back and %s forward", back, forward)
	}
}
