package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// pace replays a rate as a bucket of tokens, full at first, from which each start takes one. If a
// token is never missing, no window had more starts than the burst and the rate times its length.
type pace struct {
	rate, burst float64
	filling     float64 // tokens per second; see flow.Filling
	tokens      float64
	exact       float64 // tokens of a bucket that fills at the rate
	at          time.Duration
	taken       int
	over        int     // starts without a token
	lost        float64 // tokens that overflowed while jobs waited
	windows     []window
	given       sluice.Rate
	starts      []starts // of the longest window
}

// starts is a number of starts at a moment.
type starts struct {
	at time.Duration
	n  int
}

// window is a length of time that slides over the starts.
type window struct {
	length time.Duration
	from   int // index of the first start in it
	n      int
	most   int
}

func newPace(rate sluice.Rate, burst, filling float64) *pace {
	windows := []window{{length: time.Second}, {length: time.Minute}, {length: time.Hour}}
	if !slices.ContainsFunc(windows, func(w window) bool { return w.length == rate.Per }) {
		windows = append(windows, window{length: rate.Per})
		slices.SortFunc(windows, func(a, b window) int { return cmp.Compare(a.length, b.length) })
	}
	return &pace{given: rate, rate: rate.PerSecond(), burst: burst, filling: filling, tokens: burst, exact: burst, windows: windows}
}

// allowed returns how many jobs may start in a window, with a burst beside the rate.
func (p *pace) allowed(w window, burst int) float64 {
	if w.length == p.given.Per {
		return float64(p.given.Jobs + burst)
	}
	windows := math.Ceil(w.length.Seconds() / p.given.Per.Seconds())
	return math.Min(p.burst+p.filling*w.length.Seconds(), windows*float64(p.given.Jobs+burst))
}

// fill adds the tokens of the time that has passed.
func (p *pace) fill(now time.Duration, waited bool) {
	passed := (now - p.at).Seconds()
	p.at = now
	p.tokens = math.Min(p.tokens+p.filling*passed, p.burst)
	p.exact += p.rate * passed
	if p.exact > p.burst {
		if waited {
			p.lost += p.exact - p.burst
		}
		p.exact = p.burst
	}
}

// take takes tokens of a filled bucket.
func (p *pace) take(n int, now time.Duration) {
	const rounding = 1e-3
	p.tokens -= float64(n)
	p.exact -= float64(n)
	p.taken += n
	if p.tokens < -rounding {
		p.over += n
	}
	p.starts = append(p.starts, starts{now, n})
	for i := range p.windows {
		w := &p.windows[i]
		w.n += n
		for ; p.starts[w.from].at <= now-w.length; w.from++ {
			w.n -= p.starts[w.from].n
		}
		w.most = max(w.most, w.n)
	}
	p.trim()
}

// trim drops starts that have left every window.
func (p *pace) trim() {
	longest := p.windows[len(p.windows)-1].from
	if longest < 1024 || longest < len(p.starts)/2 {
		return
	}
	p.starts = append(p.starts[:0], p.starts[longest:]...)
	for i := range p.windows {
		p.windows[i].from -= longest
	}
}

// used is the share of tokens that was taken, among the tokens that came while jobs waited.
func (p *pace) used() float64 {
	if p.taken == 0 {
		return 0
	}
	return float64(p.taken) / (float64(p.taken) + p.lost)
}
