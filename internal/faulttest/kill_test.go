package faulttest

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
	"github.com/sluice-queue/sluice/presence"
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
			// Stop the worker while it holds jobs. On SQLite, do not stop it while it holds the file's lock, because no
			// other process could then take the lock.
			for {
				depth, err := b.store.Depth(t.Context(), b.queue, sluice.DepthLimit)
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
	go func() {
		_, err := presence.Given(b.store).Heartbeat(b.Context(), presence.Holder{ID: "test:0:x", Role: "test"})
		done <- err
	}()
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
			// The system may suspend a worker between claim and handler until its lease runs out. This recovery counts,
			// too, so one worker fewer is killed. Only a recovery that is counted twice would show with every lease.
			b := newBank(t, address)
			b.tend()
			for lease := 300 * time.Millisecond; ; lease *= 4 {
				deaths := b.poisoned(lease)
				if deaths == 2 {
					return
				}
				if lease > 4*time.Second || deaths > 2 {
					t.Fatalf("with a lease of %v the job killed %d workers; want 2", lease, deaths)
				}
				t.Logf("with a lease of %v the job killed %d workers: trying a longer one", lease, deaths)
			}
		})
	}
}

// poisoned runs a job that kills its workers. It checks that the job is buried as poison after two recoveries, and
// returns how many workers were killed.
func (b *bank) poisoned(lease time.Duration) (deaths int) {
	b.Helper()
	_, err := b.client.ChangeSettings(b.Context(), b.queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		s.MaxRecoveries, s.Lease = 2, lease
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := b.pay(1); err != nil {
		b.Fatal(err)
	}
	for b.killsWorker() {
		deaths++
	}
	page, err := b.client.Jobs(b.Context(), sluice.JobFilter{Queue: b.queue, Key: fmt.Sprintf("pay-%06d", b.seq)})
	if err != nil || len(page.Jobs) != 1 {
		b.Fatalf("jobs %v, %v", page.Jobs, err)
	}
	if job := page.Jobs[0]; job.State != sluice.StateDead || job.Attempts != 0 || job.Error != storing.PoisonError(2) {
		b.Errorf("state %s, attempts %d, error %q", job.State, job.Attempts, job.Error)
	}
	return deaths
}

// killsWorker starts a worker, and reports whether the job kills the worker before the job has ended.
func (b *bank) killsWorker() bool {
	b.Helper()
	suicide, ended := b.spawn("suicide"), make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = suicide.Wait()
	}()
	if b.settledOr(ended) {
		signalTo(b.T, suicide, syscall.SIGKILL)
		<-ended
		return false
	}
	if suicide.ProcessState.ExitCode() != 3 {
		b.Fatalf("the worker ended with %v", err)
	}
	return true
}
