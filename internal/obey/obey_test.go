package obey_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	ada   = sluice.Act{By: "ada", Reason: "deploy"}
	ours  = presence.Target{Version: "1"}
)

// heard is longer than a process needs to hear an instruction and follow it.
const heard = 15 * time.Second

// yard has a store, and the processes that work on it.
type yard struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
	ended  chan error
}

func inYard(t *testing.T, test func(y *yard)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{NoStatistics: true})
		test(&yard{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), ended: make(chan error, 1)})
	})
}

func (y *yard) ok(err error) {
	y.Helper()
	if err != nil {
		y.Fatal(err)
	}
}

func (y *yard) instruct(wanted presence.Wanted) {
	y.Helper()
	_, err := presence.Instruct(y.Context(), y.store, ours, wanted, 0, ada)
	y.ok(err)
	time.Sleep(heard)
	synctest.Wait()
}

func (y *yard) add(queue string, count int) (ids []sluice.ID) {
	y.Helper()
	for range count {
		receipt, err := y.client.Enqueue(y.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`{}`)})
		y.ok(err)
		ids = append(ids, receipt.ID)
	}
	synctest.Wait()
	return ids
}

func (y *yard) states(ids []sluice.ID) string {
	y.Helper()
	var all []string
	for _, id := range ids {
		job, err := y.store.Job(y.Context(), id)
		y.ok(err)
		if job.Attempts > 0 {
			y.Errorf("job %s has burnt %d attempts", id, job.Attempts)
		}
		all = append(all, string(job.State))
	}
	return strings.Join(all, " ")
}

// holder returns the first process of a role.
func (y *yard) holder(role string) presence.Holder {
	y.Helper()
	holders, err := presence.Holders(y.Context(), y.store)
	y.ok(err)
	at := slices.IndexFunc(holders, func(h presence.Holder) bool { return h.Role == role })
	if at < 0 {
		y.Fatalf("no %s is listed", role)
	}
	return holders[at]
}

func (y *yard) want(what, got, want string) {
	y.Helper()
	if got != want {
		y.Errorf("%s: %q, want %q", what, got, want)
	}
}

// newWorker makes a worker of a version whose handler takes 1 min.
func (y *yard) newWorker(store sluice.Store, version string) *worker.Worker {
	w := worker.New(store, worker.Options{Slots: 1, Version: version, Logger: quiet})
	worker.Handle(w, sluice.QueueOf[struct{}]("mail"), func(context.Context, *worker.Job[struct{}]) error {
		time.Sleep(time.Minute)
		return nil
	}, worker.QueueOptions{})
	return w
}

func TestWorkerQuiescesAndWorksAgain(t *testing.T) {
	inYard(t, func(y *yard) {
		ctx, stop := context.WithCancel(y.Context())
		w := y.newWorker(y.store, "1")
		go func() { y.ended <- w.Run(ctx) }()
		ids := y.add("mail", 2)
		y.want("at first", y.states(ids), "claimed queued")
		y.instruct(presence.WantedQuiesce)
		h := y.holder(presence.RoleWorker)
		y.want("mode", string(h.Mode), "quiesced")
		y.want("told by", h.Instruction.ChangedBy, "ada")
		left, err := presence.Remains(y.Context(), y.store, ours)
		y.ok(err)
		if left.Quiet() || len(left.Jobs) != 1 || len(left.Claiming) != 0 || left.Jobs[0].ID != ids[0] {
			t.Errorf("while one runs: %+v", left)
		}
		time.Sleep(time.Hour)
		y.want("an hour later", y.states(ids), "completed queued")
		if left, err = presence.Remains(y.Context(), y.store, ours); err != nil || !left.Quiet() || len(left.Holders) != 1 {
			t.Errorf("once it has ended: %+v, %v", left, err)
		}
		y.instruct(presence.WantedWork)
		y.want("mode", string(y.holder(presence.RoleWorker).Mode), "working")
		time.Sleep(2 * time.Minute)
		y.want("once lifted", y.states(ids), "completed completed")
		stop()
		y.ok(<-y.ended)
	})
}

func TestWorkerStopsAndSoDoesOneThatStartsLater(t *testing.T) {
	inYard(t, func(y *yard) {
		w := y.newWorker(y.store, "1")
		go func() { y.ended <- w.Run(y.Context()) }()
		ids := y.add("mail", 2)
		_, err := presence.Instruct(y.Context(), y.store, ours, presence.WantedStop, 0, ada)
		y.ok(err)
		err = <-y.ended
		var stopped *presence.StoppedError
		if !errors.Is(err, presence.ErrStopped) || !errors.As(err, &stopped) || stopped.Instruction.ChangedBy != "ada" {
			t.Errorf("Run returns %v", err)
		}
		if errors.Is(err, worker.ErrDrainTimeout) {
			y.want("the one that ran is handed back", y.states(ids), "queued queued")
		}
		time.Sleep(time.Minute)
		if err := y.newWorker(y.store, "1").Run(y.Context()); !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Run of a later one returns %v", err)
		}
		if _, err := y.newWorker(y.store, "1").Once(y.Context()); !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Once of a later one returns %v", err)
		}
		holders, err := presence.Holders(y.Context(), y.store)
		if err != nil || len(holders) > 0 {
			t.Errorf("listed: %v, %v", holders, err)
		}
		if ran, err := y.newWorker(y.store, "2").Once(y.Context()); err != nil || ran == 0 {
			t.Errorf("another version ran %d, %v", ran, err)
		}
	})
}

// deaf is a store whose heartbeats fail while away is set.
type deaf struct {
	sluice.Store
	processes
	mu   sync.Mutex
	away bool
}

type processes = presence.Store

func (d *deaf) Unwrap() sluice.Store { return d.Store }

func (d *deaf) be(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *deaf) Heartbeat(ctx context.Context, h presence.Holder) (presence.Instruction, error) {
	d.mu.Lock()
	away := d.away
	d.mu.Unlock()
	if away {
		return presence.Instruction{}, sluice.ErrUnavailable
	}
	return d.processes.Heartbeat(ctx, h)
}

func TestInstructionOutlivesAnOutageOfTheStore(t *testing.T) {
	inYard(t, func(y *yard) {
		store := &deaf{Store: y.store, processes: presence.Given(y.store)}
		ctx, stop := context.WithCancel(y.Context())
		w := y.newWorker(store, "1")
		go func() { y.ended <- w.Run(ctx) }()
		synctest.Wait()
		store.be(true)
		y.instruct(presence.WantedQuiesce)
		y.want("mode while the store is away", string(y.holder(presence.RoleWorker).Mode), "working")
		store.be(false)
		time.Sleep(heard)
		y.want("mode", string(y.holder(presence.RoleWorker).Mode), "quiesced")
		store.be(true)
		time.Sleep(heard)
		ids := y.add("mail", 1)
		time.Sleep(heard)
		y.want("a quiesced one claims nothing while the store is away", y.states(ids), "queued")
		stop()
		y.ok(<-y.ended)
	})
}

func TestWorkerHandsBackWhatItClaimedAheadWhenItQuiesces(t *testing.T) {
	inYard(t, func(y *yard) {
		_, err := y.client.EnsureQueue(y.Context(), "mail", sluice.DefaultSettings(), ada)
		y.ok(err)
		_, err = y.client.ChangeSettings(y.Context(), "mail", ada, func(s *sluice.Settings) error {
			s.ClaimAhead = time.Minute
			return nil
		})
		y.ok(err)
		ctx, stop := context.WithCancel(y.Context())
		w := y.newWorker(y.store, "1")
		receipt, err := y.client.Enqueue(y.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Delay: 50 * time.Second}})
		y.ok(err)
		ids := []sluice.ID{receipt.ID}
		go func() { y.ended <- w.Run(ctx) }()
		time.Sleep(5 * time.Second)
		y.want("at first", y.states(ids), "claimed")
		y.instruct(presence.WantedQuiesce)
		y.want("then", y.states(ids), "queued")
		stop()
		y.ok(<-y.ended)
	})
}

func TestUpkeepThatQuiescesGivesUpItsLeads(t *testing.T) {
	inYard(t, func(y *yard) {
		ctx, stop := context.WithCancel(y.Context())
		for _, version := range []string{"1", "2"} {
			u := upkeep.New(y.store, upkeep.Options{Version: version, Logger: quiet})
			go func() { y.ended <- u.Run(ctx) }()
			time.Sleep(time.Second) // the first upkeep leads
		}
		leader := func() string {
			holders, err := presence.Holders(y.Context(), y.store)
			y.ok(err)
			for _, h := range holders {
				if len(h.Leads) > 0 {
					return h.Version
				}
			}
			return ""
		}
		y.want("leads at first", leader(), "1")
		y.instruct(presence.WantedQuiesce)
		y.want("leads then", leader(), "2")
		_, err := presence.Instruct(y.Context(), y.store, presence.Target{Version: "2"}, presence.WantedStop, 0, ada)
		y.ok(err)
		if err := <-y.ended; !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Run returns %v", err)
		}
		time.Sleep(heard)
		y.want("leads while the one is quiesced and the other has stopped", leader(), "")
		y.instruct(presence.WantedWork)
		y.want("leads once lifted", leader(), "1")
		stop()
		y.ok(<-y.ended)
	})
}

func TestDispatcherQuiescesAndStops(t *testing.T) {
	inYard(t, func(y *yard) {
		settings := sluice.DefaultSettings()
		settings.Engine, settings.RunType = "local", "pay"
		_, err := y.client.EnsureQueue(y.Context(), "payment", settings, ada)
		y.ok(err)
		runs := local.New(y.store, local.Options{Worker: worker.Options{Logger: quiet}})
		options := dispatcher.Options{Engines: map[string]engine.Engine{"local": runs}, Version: "1", Logger: quiet}
		d := dispatcher.New(y.store, options)
		go func() { y.ended <- d.Run(y.Context()) }()
		first := y.add("payment", 1)
		time.Sleep(5 * time.Second)
		y.want("at first", y.states(first), "dispatched")
		y.instruct(presence.WantedQuiesce)
		y.want("mode", string(y.holder(presence.RoleDispatcher).Mode), "quiesced")
		second := y.add("payment", 1)
		time.Sleep(heard)
		y.want("while quiesced", y.states(second), "queued")
		_, err = presence.Instruct(y.Context(), y.store, ours, presence.WantedStop, 0, ada)
		y.ok(err)
		if err := <-y.ended; !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Run returns %v", err)
		}
		if err := dispatcher.New(y.store, options).Run(y.Context()); !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Run of a later one returns %v", err)
		}
		y.want("after a later one", y.states(second), "queued")
	})
}

func TestForwarderQuiescesAndStops(t *testing.T) {
	inYard(t, func(y *yard) {
		centre := memory.New(memory.Options{NoStatistics: true})
		f := forward.New(y.store, centre, forward.Options{Queues: []string{"events"}, Version: "1", Logger: quiet})
		go func() { y.ended <- f.Run(y.Context()) }()
		first := y.add("events", 1)
		time.Sleep(5 * time.Second)
		y.want("at first", y.states(first), "completed")
		y.instruct(presence.WantedQuiesce)
		y.want("mode", string(y.holder(presence.RoleForwarder).Mode), "quiesced")
		second := y.add("events", 1)
		time.Sleep(heard)
		y.want("while quiesced", y.states(second), "queued")
		y.instruct(presence.WantedWork)
		y.want("once lifted", y.states(second), "completed")
		_, err := presence.Instruct(y.Context(), y.store, ours, presence.WantedStop, 0, ada)
		y.ok(err)
		if err := <-y.ended; !errors.Is(err, presence.ErrStopped) {
			t.Errorf("Run returns %v", err)
		}
	})
}
