package faulttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
)

// runDyingFirer is a process that fires schedules, as the leading upkeep does. It is killed while it fires: within a
// transaction, or between the commit and its answer.
func runDyingFirer(ctx context.Context, store sluice.Store) error {
	go func() {
		due := time.Now().Truncate(time.Second).Add(time.Second)
		time.Sleep(time.Until(due) + time.Duration(rand.IntN(40_000))*time.Microsecond)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	for ctx.Err() == nil {
		fired, err := schedule.Given(store).FireSchedules(ctx, 5, nil)
		if err != nil {
			return err
		}
		time.Sleep(fired.Wait) // as upkeep does; to ask without a pause for a second costs a second of CPU
	}
	return nil
}

const (
	scheduled    = 30
	firersKilled = 24
)

func TestSchedulesWhoseUpkeepsAreKilledMakeOneJobPerFire(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			for n := range scheduled {
				definition := schedule.Definition{Queue: b.queue, Every: time.Second, Overlap: schedule.QueueAll, CatchUp: schedule.All}
				if _, err := schedule.Set(t.Context(), b.store, fmt.Sprint("s", n), definition, sluice.Act{By: "ada"}); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{}, 2)
			begin := func() {
				firer := b.spawn("dying firer")
				go func() {
					_ = firer.Wait()
					ended <- struct{}{}
				}()
			}
			begin()
			begin()
			for range firersKilled {
				<-ended
				begin()
			}
			<-ended
			<-ended
			b.firedOnceEach()
		})
	}
}

// firedOnceEach checks that each schedule has one job for each second from its first fire to its last.
func (b *bank) firedOnceEach() {
	b.Helper()
	jobs := make(map[string][]time.Time)
	page := sluice.Page{}
	for more := true; more; more = !page.Next.IsZero() {
		var err error
		if page, err = b.client.Jobs(b.Context(), sluice.JobFilter{Queue: b.queue, Cursor: page.Cursor, Limit: 10_000}); err != nil {
			b.Fatal(err)
		}
		for _, job := range page.Jobs {
			name := job.Labels[schedule.Label]
			jobs[name] = append(jobs[name], job.ID.Time())
		}
	}
	for n := range scheduled {
		s, err := schedule.Read(b.Context(), b.store, fmt.Sprint("s", n))
		if err != nil {
			b.Fatal(err)
		}
		fires, seconds := jobs[s.Name], make(map[int64]bool)
		for _, at := range fires {
			seconds[at.Unix()] = true
		}
		last := s.NextAt.Add(-time.Second)
		for k := range fires {
			if !seconds[last.Unix()-int64(k)] {
				b.Errorf("%s has no job of %s, and %d jobs", s.Name, last.Add(-time.Duration(k)*time.Second), len(fires))
			}
		}
		if p := s.Progress; p.Fired != len(fires) || p.Skipped+p.Missed != 0 || len(fires) < 3 || len(seconds) != len(fires) {
			b.Errorf("%s has %d jobs of %d seconds, and counts %+v", s.Name, len(fires), len(seconds), p)
		}
	}
}

// patience is the interval of upkeeps. Their lead lasts 10 intervals, which is longer than any test.
const patience = 10 * time.Minute

func TestAScheduleFiresOnTimeThoughTheLeaderIsKilledRightBefore(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			upkeeps := []*exec.Cmd{b.spawn("patient upkeep"), b.spawn("patient upkeep")}
			leader := b.leader()
			for ; leader == ""; leader = b.leader() {
				time.Sleep(20 * time.Millisecond)
			}
			at := time.Now().Add(3 * time.Second)
			_, err := schedule.Set(t.Context(), b.store, "soon", schedule.Definition{Queue: b.queue, At: []time.Time{at}}, sluice.Act{By: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(at) - 50*time.Millisecond)
			for _, upkeep := range upkeeps {
				if strings.Contains(leader, fmt.Sprintf(":%d:", upkeep.Process.Pid)) {
					_ = upkeep.Process.Kill()
				}
			}
			page := sluice.Page{}
			for deadline := at.Add(patience); len(page.Jobs) == 0; time.Sleep(20 * time.Millisecond) {
				if page, err = b.client.Jobs(t.Context(), sluice.JobFilter{Queue: b.queue, Limit: 10}); err != nil || time.Now().After(deadline) {
					t.Fatalf("no job, %v", err)
				}
			}
			if after := b.leader(); after != leader {
				t.Errorf("the lead went from %s to %s, so the test proves nothing", leader, after)
			}
			t.Logf("the job was made %s after its instant", page.Jobs[0].CreatedAt.Sub(at))
		})
	}
}

// leader returns the upkeep that leads; empty: nobody leads yet.
func (b *bank) leader() string {
	b.Helper()
	tasks, err := presence.Tasks(b.Context(), b.store)
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		if task.Name == presence.TaskUpkeep {
			return task.Leader.Holder
		}
	}
	return ""
}

// backfilled is the number of fires that a backfill makes in each store.
const backfilled = 3000

func TestABackfillWhoseUpkeepIsKilledMakesEachJobOnceAndCountsExactly(t *testing.T) {
	t.Parallel()
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t, address)
			_, err := schedule.Set(t.Context(), b.store, "often", schedule.Definition{Queue: b.queue, Every: time.Minute}, sluice.Act{By: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			to := time.Now().Truncate(time.Minute).Add(-time.Hour)
			op, err := operation.Start(t.Context(), b.store, operation.Operation{
				Kind: operation.KindBackfill, Backfill: &operation.Backfill{Schedule: "often", From: to.Add((1 - backfilled) * time.Minute), To: to},
			}, sluice.Act{By: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			killed := b.carryOut(&op, func() {})
			if op.State != operation.StateDone || op.Done != backfilled || op.Skipped != 0 || op.Failed != 0 || op.AtLeast || killed < 2 {
				t.Errorf("upkeep was killed %d times: %+v", killed, op)
			}
			instants := make(map[time.Time]bool)
			for cursor, more := "", true; more; {
				page, err := b.client.Jobs(t.Context(), sluice.JobFilter{Queue: b.queue, Cursor: cursor, Limit: 10_000})
				if err != nil {
					t.Fatal(err)
				}
				for _, job := range page.Jobs {
					if at := job.ID.Time(); !at.After(to) {
						instants[at] = true
					}
				}
				cursor, more = page.Cursor, !page.Next.IsZero()
			}
			if len(instants) != backfilled {
				t.Errorf("%d fires have a job, want %d", len(instants), backfilled)
			}
		})
	}
}
