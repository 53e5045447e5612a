package faulttest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
)

// soakFor is the minimum duration of the soak. With 0, the number of steps decides.
var soakFor = flag.Duration("soak", 0, "how long the soak test goes on; 0: 100 steps, with -short 20")

// soakTroubles is the minimum number of times that a soak makes each trouble.
const soakTroubles = 2

// soak is a bank under all troubles of production, mixed and for long.
type soak struct {
	*bank
	random  *rand.Rand
	workers []*exec.Cmd
	counts  map[string]int
}

func TestBooksBalanceAfterASoak(t *testing.T) {
	t.Parallel()
	steps, least := 100, soakTroubles
	if testing.Short() {
		steps, least = 20, 0
	}
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			s := &soak{bank: newBank(t, address), random: rand.New(rand.NewPCG(seed, 0)), counts: map[string]int{}}
			s.tend()
			s.workers = []*exec.Cmd{s.spawn("poster"), s.spawn("poster"), s.spawn("poster")}
			// The soak counts steps instead of time, so that a busy machine gets as much trouble as an idle one.
			for end, n := time.Now().Add(*soakFor), 0; n < steps || !s.made(least) || time.Now().Before(end); n++ {
				s.step()
			}
			s.calm()
			s.settled()
			check, err := s.ledger.Check(t.Context(), s.queue)
			if err != nil {
				t.Fatal(err)
			}
			if !check.Holds() || check.Payments != s.acked {
				t.Errorf("%d payments were acknowledged; the books say %+v", s.acked, check)
			}
			t.Logf("%d payments, %d recovered, %d released, after %v", check.Payments, check.Recoveries, check.Releases, s.counts)
		})
	}
}

// banks are the banks of the payments. Most of them accept payments.
var banks = []string{demo.BankWell, demo.BankWell, demo.BankWell, demo.BankSlowOnce, demo.BankSlowTwice, demo.BankClosed}

// trouble is a fault that happens in odds of 100 steps.
type trouble struct {
	name  string
	odds  int
	cause func() error
}

func (s *soak) troubles() []trouble {
	return []trouble{
		{"kill", 4, s.kill},
		{"restart", 4, s.restart},
		{"freeze", 2, s.freeze},
		{"pause", 3, s.pause},
		{"cancel and requeue", 8, s.changeMinds},
		{"requeue the dead", 5, s.requeueDead},
		{"change settings", 3, s.changeSettings},
	}
}

// made reports whether each trouble was made at least that often.
func (s *soak) made(least int) bool {
	return !slices.ContainsFunc(s.troubles(), func(t trouble) bool { return s.counts[t.name] < least })
}

// step enqueues payments, and perhaps makes trouble.
func (s *soak) step() {
	if err := s.payVia(1+s.random.IntN(60), func() string { return banks[s.random.IntN(len(banks))] }); err != nil {
		s.Fatal(err)
	}
	time.Sleep(time.Duration(s.random.IntN(100)) * time.Millisecond)
	for _, trouble := range s.troubles() {
		if s.random.IntN(100) >= trouble.odds {
			continue
		}
		if err := trouble.cause(); err != nil {
			s.Fatalf("%s: %v", trouble.name, err)
		}
		s.counts[trouble.name]++
	}
}

func (s *soak) victim() int { return s.random.IntN(len(s.workers)) }

func (s *soak) kill() error {
	i := s.victim()
	signalTo(s.T, s.workers[i], syscall.SIGKILL)
	_ = s.workers[i].Wait() // it was killed
	s.workers[i] = s.spawn("poster")
	return nil
}

// restart drains a worker and starts another one, as a deployment does.
func (s *soak) restart() error {
	i := s.victim()
	signalTo(s.T, s.workers[i], syscall.SIGINT)
	if err := s.workers[i].Wait(); err != nil {
		return fmt.Errorf("a worker that was asked to end: %w", err)
	}
	s.workers[i] = s.spawn("poster")
	return nil
}

// freeze stops a worker for longer than its lease. When the worker wakes up, its jobs belong to others.
func (s *soak) freeze() error {
	i := s.victim()
	signalTo(s.T, s.workers[i], syscall.SIGSTOP)
	time.Sleep(1500 * time.Millisecond)
	signalTo(s.T, s.workers[i], syscall.SIGCONT)
	return nil
}

func (s *soak) pause() error {
	act := sluice.Act{By: "soak"}
	err := s.client.Pause(s.Context(), s.queue, act)
	time.Sleep(time.Duration(s.random.IntN(500)) * time.Millisecond)
	return errors.Join(err, s.client.Resume(s.Context(), s.queue, act))
}

// changeMinds cancels jobs in different states, and requeues the jobs that it cancelled.
func (s *soak) changeMinds() error {
	page, err := s.client.Jobs(s.Context(), sluice.JobFilter{
		Queue: s.queue, States: []sluice.State{sluice.StateQueued, sluice.StateClaimed}, Limit: 20,
	})
	if err != nil || len(page.Jobs) == 0 {
		return err
	}
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	if err := beaten(s.client.Cancel(s.Context(), ids, sluice.Act{By: "soak"})); err != nil {
		return err
	}
	return s.requeue(sluice.StateCancelled)
}

func (s *soak) requeueDead() error { return s.requeue(sluice.StateDead) }

func (s *soak) requeue(state sluice.State) error {
	page, err := s.client.Jobs(s.Context(), sluice.JobFilter{Queue: s.queue, States: []sluice.State{state}, Limit: 100})
	if err != nil || len(page.Jobs) == 0 {
		return err
	}
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	return beaten(s.client.Requeue(s.Context(), ids, sluice.Act{By: "soak", Reason: "once more"}))
}

// beaten returns err, unless every job of a batch failed only because its state no longer allowed the act.
func beaten(err error) error {
	var batch *sluice.BatchError
	if !errors.As(err, &batch) {
		return err
	}
	for _, one := range batch.Failed {
		if !errors.Is(one, sluice.ErrNotAllowed) {
			return err
		}
	}
	return nil
}

func (s *soak) changeSettings() error {
	_, err := s.client.ChangeSettings(s.Context(), s.queue, sluice.Act{By: "soak"}, func(set *sluice.Settings) error {
		set.Lease = time.Second + time.Duration(s.random.IntN(1000))*time.Millisecond
		return nil
	})
	return err
}

// calm requeues all cancelled jobs.
func (s *soak) calm() {
	for {
		page, err := s.client.Jobs(s.Context(), sluice.JobFilter{Queue: s.queue, States: []sluice.State{sluice.StateCancelled}, Limit: 1})
		if err != nil {
			s.Fatal(err)
		}
		if len(page.Jobs) == 0 {
			return
		}
		if err := s.requeue(sluice.StateCancelled); err != nil {
			s.Fatal(err)
		}
	}
}
