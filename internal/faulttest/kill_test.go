package faulttest

import (
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// kills is how often a worker is killed in each store.
const kills = 20

func TestKilledWorkersLoseNothingAndDoubleNothing(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			b := newBank(t, address)
			b.tend()
			workers := []*exec.Cmd{b.spawn("poster"), b.spawn("poster")}
			for range kills {
				for range 4 {
					if err := b.pay(40); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
				}
				victim := random.IntN(len(workers))
				signalTo(t, workers[victim], syscall.SIGKILL)
				_ = workers[victim].Wait() // it was killed
				workers[victim] = b.spawn("poster")
			}
			b.settled()
			check := b.balance()
			t.Logf("%d payments, %d recovered after %d kills", check.Payments, check.Recoveries, kills)
		})
	}
}

func TestWorkerThatWakesUpAfterItsLeaseHasLostItsJobs(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			b.tend()
			frozen := b.spawn("poster")
			if err := b.pay(2000); err != nil {
				t.Fatal(err)
			}
			// Stop it while it holds jobs; on SQLite not while it holds the file's lock, which no
			// other process could then take: that is what the lock is.
			for {
				depth, err := b.store.Depth(t.Context(), b.queue)
				if err != nil {
					t.Fatal(err)
				}
				if depth.Claimed > 0 {
					break
				}
			}
			signalTo(t, frozen, syscall.SIGSTOP)
			time.Sleep(50 * time.Millisecond)
			if !writable(b) {
				signalTo(t, frozen, syscall.SIGCONT)
				t.Log("stopped within a commit; it goes on, and the next moment is tried")
				time.Sleep(5 * time.Millisecond)
				signalTo(t, frozen, syscall.SIGSTOP)
			}
			b.spawn("poster")
			time.Sleep(3 * time.Second) // three leases
			signalTo(t, frozen, syscall.SIGCONT)
			b.settled()
			b.balance()
		})
	}
}

// writable reports whether the store can be written to within a second.
func writable(b *bank) bool {
	done := make(chan error, 1)
	go func() { done <- b.store.Beat(b.Context(), sluice.Holder{ID: "test:0:x", Role: "test"}) }()
	select {
	case err := <-done:
		return err == nil
	case <-time.After(time.Second):
		return false
	}
}

func TestJobThatKillsItsWorkerIsBuriedAsPoison(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			_, err := b.client.ChangeSettings(t.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
				s.MaxRecoveries, s.Lease = 2, 300*time.Millisecond
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			b.tend()
			if err := b.pay(1); err != nil {
				t.Fatal(err)
			}
			if deaths := b.killWorkers(); deaths == 0 {
				t.Fatal("the job was buried, and had killed no worker")
			}
			page, err := b.client.Jobs(t.Context(), sluice.JobFilter{Queue: b.queue})
			if err != nil || len(page.Jobs) != 1 {
				t.Fatalf("jobs %v, %v", page.Jobs, err)
			}
			if job := page.Jobs[0]; job.State != sluice.StateDead || job.Attempts != 0 || job.Error != sluice.PoisonError(2) {
				t.Errorf("state %s, attempts %d, error %q", job.State, job.Attempts, job.Error)
			}
		})
	}
}

// killWorkers starts workers that their job kills until the job is settled, and counts those killed.
// How many are needed is not known: where the system suspends a worker between claim and handler, the
// lease runs out and counts as a recovery, too.
func (b *bank) killWorkers() (deaths int) {
	b.Helper()
	for {
		worker, ended := b.spawn("suicide"), make(chan struct{})
		var err error
		go func() {
			defer close(ended)
			err = worker.Wait()
		}()
		if b.settledOr(ended) {
			signalTo(b.T, worker, syscall.SIGKILL)
			<-ended
			return deaths
		}
		if worker.ProcessState.ExitCode() != 3 {
			b.Fatalf("the worker ended with %v", err)
		}
		deaths++
	}
}
