package sim

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-queue/sluice"
)

// draws are the random choices of a run, all from its seed. The duration of a job is drawn from its
// id, so that another rate, or more workers, meet the same jobs.
type draws struct {
	seed   uint64
	ids    *rand.Rand
	tokens *rand.Rand
	late   *rand.Rand // by how much jobs start later
	source rand.PCG
	last   uint64 // the clock part of the last id
}

func newDraws(seed uint64) *draws {
	return &draws{seed: seed, ids: rand.New(rand.NewPCG(seed, 1)), tokens: rand.New(rand.NewPCG(seed, 2)), late: rand.New(rand.NewPCG(seed, 3))}
}

// arrival returns the random source for the arrivals of a stream.
func (d *draws) arrival(number int) *rand.Rand {
	return rand.New(rand.NewPCG(d.seed, 1000+uint64(number)))
}

// id makes an id like sluice.NewID: larger than every earlier one.
func (d *draws) id(now time.Time) sluice.ID {
	d.last = max(uint64(now.UnixMilli())<<12, d.last+1)
	var id sluice.ID
	binary.BigEndian.PutUint64(id[:8], d.last>>12<<16|0x7000|d.last&0xfff)
	binary.BigEndian.PutUint64(id[8:], d.ids.Uint64()&^(3<<62)|1<<63)
	return id
}

// token makes the token of a claim, which also decides the ageing of the claim.
func (d *draws) token() sluice.Token {
	var t sluice.Token
	binary.BigEndian.PutUint64(t[:8], d.tokens.Uint64())
	binary.BigEndian.PutUint64(t[8:], d.tokens.Uint64())
	return t
}

// of returns the random source for one attempt of a job.
func (d *draws) of(id sluice.ID, attempt int) *rand.Rand {
	d.source.Seed(d.seed^binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])+uint64(attempt))
	return rand.New(&d.source)
}

// jitters draws by how much each claimed job starts later.
func (d *draws) jitters(claims []*sluice.Claim, jitter time.Duration) []time.Duration {
	late := make([]time.Duration, len(claims))
	for i := range late {
		if jitter > 0 {
			late[i] = time.Duration(d.late.Int64N(int64(jitter) + 1))
		}
	}
	return late
}

// takes draws the duration of an attempt.
func (w Work) takes(chance *rand.Rand) time.Duration {
	mean := float64(w.Mean)
	switch w.Shape {
	case exponential:
		mean *= chance.ExpFloat64()
	case lognormal: // the mean of a lognormal is that of the bell shape, raised by half its variance
		mean *= math.Exp(w.Sigma*chance.NormFloat64() - w.Sigma*w.Sigma/2)
	}
	return time.Duration(min(mean, float64(maxSpan)))
}

// backoff draws from the seed the delay that Backoff.Delay draws at random.
func backoff(b sluice.Backoff, delay time.Duration, chance *rand.Rand) time.Duration {
	if b.FullJitter {
		return time.Duration(chance.Int64N(int64(delay) + 1))
	}
	return delay + time.Duration(chance.Int64N(int64(b.Jitter)+1))
}
