package flow_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// TestBucketSpreadsStarts claims as many jobs as the bucket allows at random moments. The clock is
// sometimes 1 s behind. Then the test counts the starts in every window.
func TestBucketSpreadsStarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sluice.DefaultSettings()
		s.Rate = sluice.RatePerSecond(rapid.SampledFrom([]float64{0.01, 0.3, 1, 7, 100, 2000}).Draw(t, "rate"))
		s.Burst = rapid.IntRange(0, 50).Draw(t, "burst")
		type start struct {
			at   time.Duration
			jobs int
		}
		perSecond := s.Rate.PerSecond()
		if s.Burst == 0 {
			perSecond *= 1.02 // the window, which is empty here, keeps the rate
		}
		skew := time.Duration(rapid.IntRange(0, 1).Draw(t, "seconds that some clocks are behind")) * time.Second
		var starts []start
		var bucket flow.Bucket
		var at time.Duration
		origin := time.Unix(1_800_000_000, 0)
		for i := range rapid.IntRange(1, 60).Draw(t, "claims") {
			at += time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pause"))
			now := origin.Add(at)
			if i > 0 && rapid.IntRange(0, 9).Draw(t, "a clock that is behind") == 0 {
				now = now.Add(-skew)
			}
			bucket = bucket.Filled(s, now)
			room := flow.RoomFor(1000, s, bucket, new(flow.Window), now, 0)
			bucket = bucket.Take(room.Jobs)
			starts = append(starts, start{at, room.Jobs})
		}
		for i := range starts {
			jobs := 0
			for _, later := range starts[i:] {
				jobs += later.jobs
				window := (later.at - starts[i].at + skew).Seconds()
				if most := flow.Burst(s) + perSecond*window + 1e-6; float64(jobs) > most {
					t.Fatalf("%d jobs in %.3f s, and %.3f are allowed", jobs, window, most)
				}
			}
		}
	})
}

// TestClockThatIsSetBackDoesNotStopTheRate checks that a bucket keeps its tokens and is filled by the new time.
func TestClockThatIsSetBackDoesNotStopTheRate(t *testing.T) {
	t.Parallel()
	s := sluice.DefaultSettings()
	s.Rate, s.Burst = sluice.RatePerSecond(10), 5
	now := time.Unix(1_800_000_000, 0)
	bucket := flow.Bucket{Tokens: 2, FilledAt: now}
	now = now.Add(-time.Hour)
	if bucket = bucket.Filled(s, now); bucket.Tokens != 2 {
		t.Errorf("setting the clock back leaves %.1f of 2 tokens", bucket.Tokens)
	}
	if bucket = bucket.Filled(s, now.Add(100*time.Millisecond)); bucket.Tokens < 3 || bucket.Tokens > 3.03 {
		t.Errorf("a tenth of a second later there are %.1f tokens, want 3", bucket.Tokens)
	}
}

// TestWaitingAsToldGivesTokens checks that a claim after Wait always gets jobs, and that the rate is used up.
func TestWaitingAsToldGivesTokens(t *testing.T) {
	t.Parallel()
	for _, rate := range []sluice.Rate{sluice.RatePerSecond(0.01), sluice.RatePerSecond(0.5), sluice.RatePerSecond(1), sluice.RatePerSecond(3), sluice.RatePerSecond(100), sluice.RatePerSecond(2000), sluice.RatePerSecond(100_000)} {
		s := sluice.DefaultSettings()
		s.Rate = rate
		now := time.Unix(1_800_000_000, 0)
		begun, jobs := now, 0
		bucket := flow.Bucket{FilledAt: now} // empty
		for i := range 1000 {
			bucket = bucket.Filled(s, now)
			room := flow.RoomFor(1_000_000, s, bucket, new(flow.Window), now, 0)
			if i > 0 && room.Jobs == 0 {
				t.Fatalf("rate %s: nothing after waiting as told", rate)
			}
			bucket = bucket.Take(room.Jobs)
			jobs += room.Jobs
			now = now.Add(room.Wait)
		}
		if least := 0.95 * rate.PerSecond() * now.Sub(begun).Seconds(); float64(jobs) < least-1 {
			t.Errorf("rate %s: %d jobs in %s, want at least %.1f", rate, jobs, now.Sub(begun), least)
		}
	}
}

func TestRoomIsTheLeastOfTheLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		rate          sluice.Rate
		inFlightLimit int
		tokens        float64
		inFlight      int
		want          flow.Room
	}{
		{name: "no limits", want: flow.Room{Jobs: 10}},
		{name: "enough tokens", rate: sluice.RatePerSecond(100), tokens: 10, want: flow.Room{Jobs: 10}},
		{name: "few tokens", rate: sluice.Rate{Jobs: 60, Per: time.Minute}, tokens: 3.5, want: flow.Room{Jobs: 3, Wait: 500 * time.Millisecond}},
		{name: "no tokens", rate: sluice.RatePerSecond(2), tokens: 0, want: flow.Room{Wait: 500 * time.Millisecond}},
		{name: "some may be in flight", inFlightLimit: 8, inFlight: 5, want: flow.Room{Jobs: 3, Full: true}},
		{name: "none may be in flight", inFlightLimit: 8, inFlight: 9, want: flow.Room{Full: true}},
		{name: "a limit that is far", inFlightLimit: 100, inFlight: 9, want: flow.Room{Jobs: 10}},
		{name: "both", rate: sluice.Rate{Jobs: 60, Per: time.Minute}, tokens: 4, inFlightLimit: 8, inFlight: 6, want: flow.Room{Jobs: 2, Wait: time.Second, Full: true}},
	} {
		s := sluice.DefaultSettings()
		s.Rate, s.Concurrency = c.rate, c.inFlightLimit
		if got := flow.RoomFor(10, s, flow.Bucket{Tokens: c.tokens}, new(flow.Window), time.Unix(1_800_000_000, 0), c.inFlight); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
