package faulttest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/store/storetest"
	"github.com/sluice-queue/sluice/worker"
)

// envStarts names the file to which worker processes append when their handlers began.
const envStarts = "SLUICE_FAULTTEST_STARTS"

// runStarter is a worker process whose handlers write down when they began.
func runStarter(ctx context.Context, store sluice.Store, queue string) error {
	file, err := os.OpenFile(os.Getenv(envStarts), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	w := worker.New(store, worker.Options{Slots: 5, Poll: 100 * time.Millisecond, Logger: quiet})
	worker.Handle(w, sluice.QueueOf[demo.Payment](queue), func(ctx context.Context, _ *worker.Job[demo.Payment]) error {
		if _, err := fmt.Fprintln(file, steadily().UnixMicro()); err != nil {
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

// TestNoWindowHasMoreStartsThanTheRateWithProcessesThatDie keeps killing, freezing and ending three worker processes, and
// lowers the rate in between. It looks at every window of what their handlers wrote down.
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
			cut := slices.IndexFunc(seen, changed.Before)
			if cut < 0 {
				t.Fatalf("no job started after the rate was changed; %d before", len(seen))
			}
			for i, part := range [][]time.Time{seen[:cut], seen[cut:]} {
				t.Logf("%d jobs started at %s", len(part), rates[i])
				storetest.KeepsRate(t, part, rates[i], 0)
			}
		})
	}
}

// steadily tells the time by the clock that nobody sets, which all processes of a machine read alike.
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
		_ = workers[i].Wait() // it was killed, or ends as told
		workers[i] = b.spawn("starter")
	}
}

// readStarts reads when handlers began, in order.
func readStarts(t *testing.T, path string) (starts []time.Time) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		at, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		starts = append(starts, time.UnixMicro(at))
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}
