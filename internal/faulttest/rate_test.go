package faulttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/worker"
)

// envStarts names the file to which worker processes append the start times of their handlers.
const envStarts = "SLUICE_FAULTTEST_STARTS"

// start is when a handler began. The worker reads its clock between before and at, and the rate counts that reading.
// The system may suspend the process right after the reading, so at can be later.
type start struct{ before, at time.Time }

// timed is a payment that remembers when the worker decoded it, just before the handler begins.
type timed struct {
	demo.Payment
	decoded time.Time
}

func (p *timed) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, &p.Payment)
	p.decoded = steadily()
	return err
}

// runStarter is a worker process whose handlers record when they began.
func runStarter(ctx context.Context, store sluice.Store, queue string) error {
	file, err := os.OpenFile(os.Getenv(envStarts), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w := worker.New(store, worker.Options{Slots: 5, Poll: 100 * time.Millisecond, Logger: quiet})
	worker.Handle(w, sluice.QueueOf[timed](queue), func(ctx context.Context, job *worker.Job[timed]) error {
		at := steadily()
		if _, err := fmt.Fprintln(file, job.Payload.decoded.UnixMicro(), at.UnixMicro()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rand.IntN(300)) * time.Millisecond):
		}
		return nil
	}, worker.QueueOptions{})
	return w.Run(ctx)
}

// TestNoWindowHasMoreStartsThanTheRateWithProcessesThatDie kills, freezes and ends three worker processes again and
// again, and lowers the rate in between. It checks every window of the starts that the handlers recorded.
func TestNoWindowHasMoreStartsThanTheRateWithProcessesThatDie(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			starts := filepath.Join(t.TempDir(), "starts")
			b.env = append(b.env, envStarts+"="+starts)
			rates := []sluice.Rate{{Jobs: 60, Per: time.Second}, {Jobs: 50, Per: 2 * time.Second}}
			b.limit(rates[0])
			b.tend()
			if err := b.pay(2000); err != nil {
				t.Fatal(err)
			}
			workers := []*exec.Cmd{b.spawn("starter"), b.spawn("starter"), b.spawn("starter")}
			b.disturb(workers, 5*time.Second)
			b.limit(rates[1])
			changed := steadily().Add(sluice.SettingsInterval)
			b.disturb(workers, 6*time.Second)
			seen := readStarts(t, starts)
			cut := slices.IndexFunc(seen, func(s start) bool { return changed.Before(s.at) })
			if cut < 0 {
				t.Fatalf("no job started after the rate was changed; %d before", len(seen))
			}
			for i, part := range [][]start{seen[:cut], seen[cut:]} {
				t.Logf("%d jobs started at %s", len(part), rates[i])
				keepsRate(t, part, rates[i])
			}
		})
	}
}

// steadily returns the time of the steady clock. Nobody can set it, and all processes of a machine read the same time.
func steadily() time.Time {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return time.Unix(at.Unix())
}

// limit changes the rate of the bank's queue.
func (b *bank) limit(rate sluice.Rate) {
	b.Helper()
	_, err := b.client.ChangeSettings(b.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		s.Rate, s.Burst = rate, 0
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// disturb kills, freezes and ends worker processes for a while, and starts others in their place.
func (b *bank) disturb(workers []*exec.Cmd, while time.Duration) {
	b.Helper()
	for begun := time.Now(); time.Since(begun) < while; {
		time.Sleep(time.Duration(100+rand.IntN(500)) * time.Millisecond)
		i := rand.IntN(len(workers))
		switch rand.IntN(3) {
		case 0:
			signalTo(b.T, workers[i], syscall.SIGKILL)
		case 1:
			signalTo(b.T, workers[i], syscall.SIGINT)
		default:
			signalTo(b.T, workers[i], syscall.SIGSTOP)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			signalTo(b.T, workers[i], syscall.SIGCONT)
			continue
		}
		_ = workers[i].Wait() // the process was killed, or ends because it was interrupted
		workers[i] = b.spawn("starter")
	}
}

// keepsRate checks every window of starts, which are in order. No window may have more starts than the rate allows,
// even if each handler began as early as possible.
func keepsRate(t *testing.T, starts []start, rate sluice.Rate) {
	t.Helper()
	for i := rate.Jobs; i < len(starts); i++ {
		first := slices.MinFunc(starts[i-rate.Jobs:i+1], func(a, b start) int { return a.before.Compare(b.before) })
		if early := rate.Per - starts[i].at.Sub(first.before); early > 0 {
			t.Fatalf("%d jobs started in the %s before %s, and %d may: the last came %s too early", rate.Jobs+1, rate.Per, starts[i].at, rate.Jobs, early)
		}
	}
}

// readStarts returns when handlers began, in order.
func readStarts(t *testing.T, path string) (starts []start) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var before, at int64
		if _, err := fmt.Sscan(lines.Text(), &before, &at); err != nil {
			t.Fatal(err)
		}
		starts = append(starts, start{time.UnixMicro(before), time.UnixMicro(at)})
	}
	slices.SortFunc(starts, func(a, b start) int { return a.at.Compare(b.at) })
	return starts
}
