package storetest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

func instructionRules() []Rule {
	return []Rule{
		{"R-820", "A heartbeat returns the instruction to its process: to it alone, to its version, or to all; others get none.", "C-21", func(w *world) {
			for _, target := range []presence.Target{{Holder: holder(1)}, {Version: "v1"}, {All: true}} {
				act := person("instruct")
				given := w.instruct(target, presence.WantedQuiesce, 0, act)
				equal(w, "target", given.Target, target)
				for n, h := range []presence.Holder{
					{ID: holder(1), Role: presence.RoleWorker, Version: "v1"}, {ID: holder(2), Role: presence.RoleUpkeep, Version: "v2"},
				} {
					told := w.beat(w.Other, h)
					if n == 1 && !target.All {
						equal(w, "another is told", told, presence.Instruction{})
						continue
					}
					equal(w, "wanted of "+target.String(), told.Wanted, presence.WantedQuiesce)
					equal(w, "whom", told.Target, target)
					equal(w, "by", told.ChangedBy, act.By)
					equal(w, "reason", told.Reason, act.Reason)
					equal(w, "at", told.ChangedAt.Equal(given.ChangedAt), true)
				}
				w.instruct(target, presence.WantedWork, 0, person("lift"))
				equal(w, "once lifted", w.beat(w.Store, presence.Holder{ID: holder(1), Version: "v1"}).Quiesces(), false)
			}
		}},
		{"R-821", "Of several instructions that choose a process, the newest counts, whichever is the narrower, and also if the clock was set back.", "I-26", func(w *world) {
			h := presence.Holder{ID: holder(1), Role: presence.RoleWorker, Version: "v1"}
			w.beat(w.Store, h)
			for _, step := range []struct {
				target presence.Target
				wanted presence.Wanted
			}{
				{presence.Target{Version: "v1"}, presence.WantedStop},
				{presence.Target{Holder: h.ID}, presence.WantedWork},
				{presence.Target{All: true}, presence.WantedQuiesce},
				{presence.Target{Version: "v1"}, presence.WantedWork},
			} {
				w.instruct(step.target, step.wanted, 0, person("instruct"))
				equal(w, step.target.String(), w.beat(w.Other, h).Wanted, step.wanted)
				w.Advance(-time.Minute)
			}
			var given []string
			for _, i := range w.instructions(w.Other) {
				given = append(given, i.Target.String())
			}
			equal(w, "the newest first", strings.Join(given, ", "), "version v1, all, holder "+h.ID)
		}},
		{"R-822", "An instruction with a time limit counts until then, by the store's clock.", "I-26", func(w *world) {
			h := presence.Holder{ID: holder(1), Role: presence.RoleWorker, Version: "v1"}
			given := w.instruct(presence.Target{Version: "v1"}, presence.WantedQuiesce, time.Hour, person("instruct"))
			w.near("until", given.Until, w.Now().Add(time.Hour))
			equal(w, "until of the answer", w.beat(w.Store, h).Until.Equal(given.Until), true)
			w.Advance(59 * time.Minute)
			equal(w, "before", w.beat(w.Store, h).Quiesces(), true)
			w.Advance(2 * time.Minute)
			equal(w, "after", w.beat(w.Other, h), presence.Instruction{})
		}},
		{"R-823", "An instruction to a version is kept for processes that start later; one to a process, one that has ended, and one that lifts nothing are forgotten an hour later.", "C-21", func(w *world) {
			w.beat(w.Store, presence.Holder{ID: holder(1), Role: presence.RoleWorker, Version: "v1"})
			w.instruct(presence.Target{All: true}, presence.WantedWork, 0, person("lift"))
			w.instruct(presence.Target{Holder: holder(1)}, presence.WantedStop, 0, person("instruct"))
			w.instruct(presence.Target{Version: "v1"}, presence.WantedQuiesce, 0, person("instruct"))
			w.instruct(presence.Target{Version: "v2"}, presence.WantedQuiesce, time.Minute, person("instruct"))
			w.instruct(presence.Target{Version: "v3"}, presence.WantedWork, 0, person("lift"))
			_, err := w.Store.Repair(w.ctx, holder(9))
			w.ok(err)
			equal(w, "at first", len(w.instructions(w.Store)), 5)
			w.Advance(62 * time.Minute)
			for range 2 { // the second finds no holder any more
				_, err = w.Store.Repair(w.ctx, holder(9))
				w.ok(err)
			}
			var left []string
			for _, i := range w.instructions(w.Other) {
				left = append(left, i.Target.String())
			}
			equal(w, "left", strings.Join(left, ", "), "version v3, version v1")
			told := w.beat(w.Other, presence.Holder{ID: holder(2), Role: presence.RoleWorker, Version: "v1"})
			equal(w, "a later process", told.Wanted, presence.WantedQuiesce)
		}},
		{"R-824", "A holder is listed with its version, its protocol and its mode, as its last heartbeat says.", "C-21", func(w *world) {
			h := presence.Holder{ID: holder(1), Role: presence.RoleWorker, Version: "v1", Protocol: 1, Mode: presence.ModeWorking}
			for _, mode := range []presence.Mode{presence.ModeWorking, presence.ModeQuiesced, presence.ModeStopping} {
				h.Mode, h.Protocol, h.Version = mode, h.Protocol+1, h.Version+"x"
				w.beat(w.Store, h)
				holders, err := presence.Given(w.Other).Holders(w.ctx)
				w.ok(err)
				equal(w, "mode", holders[0].Mode, h.Mode)
				equal(w, "protocol", holders[0].Protocol, h.Protocol)
				equal(w, "version", holders[0].Version, h.Version)
			}
		}},
		{"R-825", "The claimed jobs of processes are listed, by queue and then the longest claimed first; ended, waiting and others' jobs are not.", "C-21", func(w *world) {
			var ids []sluice.ID
			for range 4 {
				ids = append(ids, w.add(sluice.EnqueueOptions{}))
				w.Advance(time.Second)
			}
			var claims []*sluice.Claim
			for n := range 3 {
				got, err := w.Store.Claim(w.ctx, claimOf(min(n, 1), 1))
				w.ok(err)
				claims = append(claims, got.Jobs...)
				w.Advance(time.Second)
			}
			held, err := presence.Given(w.Other).HeldJobs(w.ctx, []string{holder(1), holder(7)}, 10)
			w.ok(err)
			equal(w, "of one", len(held), 2)
			equal(w, "first", held[0].ID, claims[1].ID)
			equal(w, "its queue", held[0].Queue, queue)
			equal(w, "its holder", held[0].Holder, holder(1))
			equal(w, "claimed at", held[0].ClaimedAt.Equal(w.job(claims[1].ID).ClaimedAt), true)
			equal(w, "lease", held[0].LeaseUntil.Sub(w.job(claims[1].ID).LeaseUntil).Abs() < time.Second, true)
			held, err = presence.Given(w.Other).HeldJobs(w.ctx, []string{holder(0), holder(1)}, 2)
			w.ok(err)
			equal(w, "at most", len(held), 2)
			equal(w, "the longest claimed", held[0].ID, ids[0])
			w.done(sluice.Settlement{ID: claims[1].ID, Token: claims[1].Token, Event: sluice.EventComplete})
			held, err = presence.Given(w.Other).HeldJobs(w.ctx, []string{holder(1)}, 10)
			w.ok(err)
			equal(w, "after one ended", len(held), 1)
			held, err = presence.Given(w.Other).HeldJobs(w.ctx, nil, 10)
			w.ok(err)
			equal(w, "of nobody", len(held), 0)
		}},
		{"R-826", "A leader that asks for its task with a lease of a moment gives it up: another leads at once.", "I-25", func(w *world) {
			equal(w, "takes", leads(w, w.Store, 1, "upkeep"), "upkeep")
			_, err := presence.Given(w.Store).Elect(w.ctx, holder(1), []string{"upkeep"}, time.Microsecond)
			w.ok(err)
			w.Advance(time.Millisecond)
			equal(w, "another", leads(w, w.Other, 2, "upkeep"), "upkeep")
			equal(w, "the one that gave it up", leads(w, w.Store, 1, "upkeep"), "")
		}},
		{"R-827", "Of many instructions at once, all are stored, and no two have the same instant.", "I-15", func(w *world) {
			var all sync.WaitGroup
			for n := range 8 {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				target := presence.Target{Version: holder(n)}
				all.Go(func() {
					_, err := presence.Instruct(w.ctx, store, target, presence.WantedQuiesce, 0, person("instruct"))
					if err != nil {
						w.Errorf("instruct %s: %v", target, err)
					}
				})
			}
			all.Wait()
			var at []time.Time
			for _, i := range w.instructions(w.Store) {
				at = append(at, i.ChangedAt)
			}
			equal(w, "instants", len(slices.CompactFunc(at, time.Time.Equal)), 8)
		}},
	}
}

// instruct gives an instruction, and again with the same act, which must give the same answer.
func (w *world) instruct(target presence.Target, wanted presence.Wanted, during time.Duration, act sluice.Act) presence.Instruction {
	w.Helper()
	if target.Holder != "" {
		w.beat(w.Store, presence.Holder{ID: target.Holder, Role: presence.RoleWorker, Version: "v1"})
	}
	first, err := presence.Instruct(w.ctx, w.Store, target, wanted, during, act)
	w.ok(err)
	again, err := presence.Instruct(w.ctx, w.Other, target, wanted, during, act)
	w.ok(err)
	equal(w, "version of the act that is sent again", again.Version, first.Version)
	equal(w, "instant of the act that is sent again", again.ChangedAt.Equal(first.ChangedAt), true)
	return first
}

// instructions lists the stored instructions.
func (w *world) instructions(store sluice.Store) []presence.Instruction {
	w.Helper()
	all, err := presence.Given(store).Instructions(w.ctx)
	w.ok(err)
	return all
}
