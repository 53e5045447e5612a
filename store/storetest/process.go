package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/verbtest"
	"github.com/sluice-queue/sluice/presence"
)

func processRules() []Rule {
	return []Rule{
		{"R-110", "A holder that beats is listed with what it said, with its conditions and whether it counts, until it leaves or has been silent for an hour.", "C-21", func(w *world) {
			h := presence.Holder{ID: holder(1), Role: "worker", Queues: []string{"a", "b"}, Slots: 8, Busy: 3, Version: "v1"}
			w.beat(w.Store, h)
			w.beat(w.Store, presence.Holder{ID: holder(2), Role: "upkeep"})
			h.Busy, h.Conditions = 4, []presence.Condition{
				presence.NewCondition(presence.ConditionEngineAway, "a", "eu", time.Unix(1_800_000_000, 0).UTC(), `no route: "eu"`),
				{Kind: presence.ConditionNoPollers, Queue: "b", Text: "nobody\x00 polls"},
			}
			w.beat(w.Store, h)
			holders, err := presence.Given(w.Other).Holders(w.ctx)
			w.ok(err)
			equal(w, "holders", len(holders), 2)
			got := holders[0]
			equal(w, "id", got.ID, h.ID)
			equal(w, "queues", len(got.Queues), 2)
			equal(w, "slots", got.Slots, 8)
			equal(w, "busy", got.Busy, 4)
			equal(w, "version", got.Version, "v1")
			equal(w, "it counts", got.Counts, true)
			equal(w, "conditions", len(got.Conditions), 2)
			equal(w, "the first", got.Conditions[0], h.Conditions[0])
			equal(w, "the second", got.Conditions[1].Kind, h.Conditions[1].Kind)
			h.Conditions = nil
			w.beat(w.Store, h)
			holders, err = presence.Given(w.Other).Holders(w.ctx)
			w.ok(err)
			equal(w, "conditions that are over", len(holders[0].Conditions), 0)
			w.near("seen", got.Seen, w.Now())
			w.ok(presence.Given(w.Store).Deregister(w.ctx, holder(2)))
			holders, err = presence.Given(w.Store).Holders(w.ctx)
			w.ok(err)
			equal(w, "after one left", len(holders), 1)
			w.Advance(61 * time.Minute)
			holders, err = presence.Given(w.Store).Holders(w.ctx)
			w.ok(err)
			equal(w, "after an hour", len(holders), 0)
		}},
		{"R-111", "Who watches is told when jobs of a queue may be claimed, also when another store put them in.", "C-40", func(w *world) {
			heard := w.watch(w.Store)
			w.add(sluice.EnqueueOptions{})
			heard.wait(w, "an enqueue", wakes)
			_, err := w.Other.Enqueue(w.ctx, []sluice.Insert{insertOf(sluice.EnqueueOptions{})})
			w.ok(err)
			heard.wait(w, "an enqueue through another store", wakes)
		}},
		{"R-112", "Who watches is told when a claimed job is cancelled.", "H-14", func(w *world) {
			heard := w.watch(w.Store)
			id := w.add(sluice.EnqueueOptions{})
			w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			heard.wait(w, "the cancellation", func(s sluice.Signal) bool { return s.Cancelled == id })
		}},
		{"R-113", "One of many leads a task, by a lease; another may once it has left or its lease has passed, and not before.", "I-25", func(w *world) {
			equal(w, "takes", leads(w, w.Store, 1, "upkeep", "follow a"), "upkeep follow a")
			equal(w, "another", leads(w, w.Other, 2, "upkeep", "follow a", "follow b"), "follow b")
			w.Advance(leadLease / 2)
			equal(w, "keeps", leads(w, w.Store, 1, "upkeep", "follow a"), "upkeep follow a")
			w.Advance(leadLease * 3 / 4)
			equal(w, "another while the lease was renewed, with its own that was not", leads(w, w.Other, 2, "upkeep", "follow b"), "follow b")
			equal(w, "a third", leads(w, w.Other, 3, "upkeep", "follow a", "follow b"), "")
			w.ok(presence.Given(w.Store).Deregister(w.ctx, holder(1)))
			equal(w, "a third after the first left", leads(w, w.Other, 3, "upkeep", "follow b"), "upkeep")
			w.Advance(leadLease + time.Second)
			equal(w, "after the lease has passed", leads(w, w.Store, 1, "upkeep", "follow b"), "upkeep follow b")
			equal(w, "the one that was late", leads(w, w.Other, 3, "upkeep"), "")
		}},
		{"R-490", "Who leads which task is listed, with since when, and whether the lease still runs.", "I-25", func(w *world) {
			leads(w, w.Store, 1, "upkeep")
			w.Advance(leadLease / 2)
			leads(w, w.Store, 1, "upkeep")
			leads(w, w.Other, 2, "follow a")
			w.Advance(leadLease * 3 / 4)
			leads(w, w.Store, 1, "upkeep")
			w.Advance(leadLease / 2)
			all, err := presence.Given(w.Other).Leaders(w.ctx)
			w.ok(err)
			equal(w, "leads", len(all), 2)
			equal(w, "first", all[0].Task+" by "+all[0].Holder, "follow a by "+holder(2))
			equal(w, "a lease that was not renewed", all[0].Held, false)
			equal(w, "second", all[1].Task+" by "+all[1].Holder, "upkeep by "+holder(1))
			equal(w, "a lease that was", all[1].Held, true)
			w.near("since", all[1].Since, w.Now().Add(-leadLease*7/4))
		}},
		{"R-491", "A lease that was given before the clock was set back holds nobody up.", "I-25, I-26", func(w *world) {
			leads(w, w.Store, 1, "upkeep")
			w.Advance(-time.Hour)
			equal(w, "another", leads(w, w.Other, 2, "upkeep"), "upkeep")
			equal(w, "the first", leads(w, w.Store, 1, "upkeep"), "")
			w.Advance(leadLease + time.Second)
			equal(w, "the first, in time", leads(w, w.Store, 1, "upkeep"), "upkeep")
		}},
		{"R-114", "A closed store gives ErrUnavailable, never an empty answer, for every verb; it may be closed twice.", "I-20", func(w *world) {
			w.add(sluice.EnqueueOptions{})
			for range 2 {
				w.ok(w.Store.Close())
			}
			panics := func(verb string, panicked any) { w.Errorf("%s panics: %v", verb, panicked) }
			for verb, err := range verbtest.Call(w.ctx, w.Store, panics) {
				if !errors.Is(err, sluice.ErrUnavailable) && !errors.Is(err, sluice.ErrInvalid) { // arguments may be looked at first
					w.Errorf("%s of a closed store: %v, want an ErrUnavailable", verb, err)
				}
			}
		}},
		{"R-115", "A call whose context has ended gives the context's error and changes nothing.", "I-20", func(w *world) {
			ended, cancel := context.WithCancel(w.ctx)
			cancel()
			in := insertOf(sluice.EnqueueOptions{})
			_, err := w.Store.Enqueue(ended, []sluice.Insert{in})
			w.is(err, context.Canceled)
			_, err = w.Store.Job(w.ctx, in.ID)
			w.is(err, sluice.ErrNotFound)
			_, err = w.Store.Claim(ended, claimOf(1, 1))
			w.is(err, context.Canceled)
		}},
	}
}

// beat sends a heartbeat, and gives the answer.
func (w *world) beat(store sluice.Store, h presence.Holder) presence.Instruction {
	w.Helper()
	told, err := presence.Given(store).Heartbeat(w.ctx, h)
	w.ok(err)
	return told
}

// leadLease is that of the rules of leads: long, so that none passes by itself.
const leadLease = 10 * time.Minute

// leads asks for the lead of tasks, and gives those that were given.
func leads(w *world, store sluice.Store, n int, tasks ...string) string {
	w.Helper()
	got, err := presence.Given(store).Elect(w.ctx, holder(n), tasks, leadLease)
	w.ok(err)
	var inOrder []string
	for _, task := range tasks {
		if slices.Contains(got, task) {
			inOrder = append(inOrder, task)
		}
	}
	equal(w, "tasks that were not asked for", len(got)-len(inOrder), 0)
	return strings.Join(inOrder, " ")
}

// ears collect the signals of a store.
type ears struct {
	mu      sync.Mutex
	signals []sluice.Signal
	more    chan struct{}
}

// watch listens until the rule ends.
func (w *world) watch(store sluice.Store) *ears {
	e := &ears{more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(w.ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := store.Watch(ctx, e.hear); err != nil {
			w.Errorf("watch: %v", err)
		}
	})
	w.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	// The store is listening once it repeats what it is told; until then signals may be missed.
	for listens := false; !listens; listens = e.within(50*time.Millisecond, wakes) {
		w.add(sluice.EnqueueOptions{Delay: 1000 * time.Hour})
	}
	time.Sleep(300 * time.Millisecond) // signals of the tries may still be on their way
	e.mu.Lock()
	e.signals = nil
	e.mu.Unlock()
	return e
}

func wakes(s sluice.Signal) bool {
	return s.Hearing == "" && s.Cancelled.IsZero() && (s.Queue == queue || s.Queue == "")
}

func (e *ears) hear(s sluice.Signal) {
	e.mu.Lock()
	e.signals = append(e.signals, s)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// wait ends the rule unless a signal comes; the store has all the time it may need.
func (e *ears) wait(w *world, what string, want func(sluice.Signal) bool) {
	w.Helper()
	if !e.within(10*time.Minute, want) {
		w.Fatalf("nobody was told of %s", what)
	}
}

// within takes signals until one fits; those before it are forgotten.
func (e *ears) within(d time.Duration, want func(sluice.Signal) bool) bool {
	limit := time.After(d)
	for {
		e.mu.Lock()
		for i, s := range e.signals {
			if want(s) {
				e.signals = e.signals[i+1:]
				e.mu.Unlock()
				return true
			}
		}
		e.mu.Unlock()
		select {
		case <-e.more:
		case <-limit:
			return false
		}
	}
}
