package crashtest

import (
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/storetest"
)

// TestNoWindowHasMoreStartsInTemporalThanTheRate kills dispatchers, cuts their connections and pauses the queue at
// random moments. Then it reads from Temporal when each run started.
func TestNoWindowHasMoreStartsInTemporalThanTheRate(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rate := sluice.Rate{Jobs: 40, Per: time.Second}
			b := newBank(t, address)
			b.set(func(s *sluice.Settings) { s.Rate, s.Burst = rate, 0 })
			b.tend()
			wire := newWire(t, b.engine)
			b.engine = wire.address
			b.enqueue(300)
			dispatchers := []*exec.Cmd{b.spawn(never), b.spawn(never)}
			random := rand.New(rand.NewPCG(seed(t), 0))
			for range 25 {
				time.Sleep(time.Duration(100+random.IntN(300)) * time.Millisecond)
				switch i := random.IntN(len(dispatchers)); random.IntN(4) {
				case 0:
					if err := dispatchers[i].Process.Signal(syscall.SIGKILL); err != nil {
						t.Fatal(err)
					}
					_ = dispatchers[i].Wait() // ends by SIGKILL
					dispatchers[i] = b.spawn(never)
				case 1:
					b.set(func(s *sluice.Settings) { s.Paused = !s.Paused })
				default:
					wire.cut()
				}
			}
			b.set(func(s *sluice.Settings) { s.Paused = false })
			b.settled()
			b.onceEach()
			var starts []time.Time
			for _, run := range b.spans() {
				starts = append(starts, run.start)
			}
			if len(starts) != len(b.jobs) {
				t.Errorf("%d runs started for %d jobs", len(starts), len(b.jobs))
			}
			storetest.KeepsRate(t, starts, rate, 0)
		})
	}
}
