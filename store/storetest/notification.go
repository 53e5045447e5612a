package storetest

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/notify"
)

// register makes receivers known.
func (w *world) register(receivers ...string) {
	w.Helper()
	for _, r := range receivers {
		w.ok(alert.Given(w.Other).SaveReceiver(w.ctx, r))
	}
}

// claimOfReceiver is a claim of the notifications of a receiver, for a minute.
func claimOfReceiver(receiver string) sluice.ClaimRequest {
	return sluice.ClaimRequest{Queue: notify.Queue(receiver), Limit: 10, Holder: "upkeep", Lease: time.Minute, Token: sluice.NewToken()}
}

// take claims the notifications of a receiver, by the names of their alerts.
func (w *world) take(receiver string) []*sluice.Claim {
	w.Helper()
	w.register(receiver)
	claims := w.claimAs(w.Other, claimOfReceiver(receiver))
	slices.SortFunc(claims, func(a, b *sluice.Claim) int { return strings.Compare(a.OrderKey, b.OrderKey) })
	return claims
}

// messageOf reads the message of a notification.
func (w *world) messageOf(c *sluice.Claim) (m alert.Message) {
	w.Helper()
	w.ok(json.Unmarshal(c.Payload, &m))
	return m
}

// delivered settles a notification.
func (w *world) delivered(c *sluice.Claim) {
	w.Helper()
	w.done(sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: sluice.EventComplete})
}

// receiver returns a stored receiver.
func (w *world) receiver(name string) alert.ReceiverStatus {
	w.Helper()
	for _, r := range w.book().Receivers {
		if r.Name == name {
			return r
		}
	}
	w.Fatalf("receiver %s is not known", name)
	return alert.ReceiverStatus{}
}

func notificationRules() []Rule {
	return slices.Concat(deliveryRules(), receiverRules())
}

func deliveryRules() []Rule {
	return []Rule{
		{"R-345", "Each message of an evaluation becomes one job for every receiver that is known, in the transaction that stores the evaluation. The job waits until it is settled: by whichever process, after any while.", "C-74, I-20", func(w *world) {
			for _, receiver := range []string{"hook", "pager"} {
				equal(w, "before", len(w.take(receiver)), 0)
			}
			a, _ := w.firing("dead-letters", queue, 0)
			round := w.round(a)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, round))
			for _, receiver := range []string{"hook", "pager"} {
				taken := w.take(receiver)
				equal(w, "notifications of "+receiver, len(taken), 1)
				want, got := round.Messages[0], w.messageOf(taken[0])
				if !got.At.Truncate(time.Millisecond).Equal(want.At.Truncate(time.Millisecond)) || !got.FiredAt.Equal(want.FiredAt) {
					w.Fatalf("got %+v, want %+v", got, want)
				}
				got.At, got.FiredAt, want.At, want.FiredAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
				equal(w, "message", got, want)
				equal(w, "failed attempts", taken[0].Attempts, 0)
				w.delivered(taken[0])
			}
			w.Advance(time.Hour)
			equal(w, "after", len(w.take("hook"))+len(w.take("pager")), 0)
			equal(w, "of one that was not known", len(w.take("late")), 0)
			equal(w, "receivers", len(w.book().Receivers), 3)
			equal(w, "waiting", w.receiver("hook").Waiting, 0)
		}},
		{"R-346", "A notification that was claimed is nobody else's until its lease has run out; then it is recovered and claimed again, with how often that was.", "I-20", func(w *world) {
			w.register("hook")
			a, _ := w.firing("dead-letters", queue, 0)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			var mu sync.Mutex
			var all sync.WaitGroup
			taken := 0
			for _, store := range []sluice.Store{w.Store, w.Other, w.Store, w.Other} {
				all.Go(func() {
					claimed, err := store.Claim(w.ctx, claimOfReceiver("hook"))
					mu.Lock()
					defer mu.Unlock()
					taken += len(claimed.Jobs)
					if err != nil {
						w.Error(err)
					}
				})
			}
			all.Wait()
			equal(w, "taken", taken, 1)
			equal(w, "waiting", w.receiver("hook").Waiting, 1)
			w.Advance(2 * time.Minute)
			recovered, err := w.Other.Recover(w.ctx, notify.Queue("hook"), 10, "upkeep")
			w.ok(err)
			equal(w, "recovered", recovered.Requeued, 1)
			again := w.take("hook")
			equal(w, "again", len(again), 1)
			equal(w, "lost holders", again[0].Recoveries, 1)
		}},
		{"R-347", "Of each alert the oldest notification is claimed first and no other before it was delivered, however often it is put off; those of other alerts do not wait for it.", "C-74", func(w *world) {
			w.register("hook")
			a, _ := w.firing("dead-letters", queue, 0)
			other, _ := w.firing("clock", "", 0)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			a.Version = 1
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a, other)))
			first := w.take("hook")
			equal(w, "notifications", len(first), 2)
			equal(w, "of", w.messageOf(first[0]).Rule+" and "+w.messageOf(first[1]).Rule, "clock and dead-letters")
			w.delivered(first[0])
			head := first[1]
			w.done(sluice.Settlement{
				ID: head.ID, Token: head.Token, Holder: head.Holder, Event: sluice.EventRetry, Delay: 10 * time.Minute, Error: "no route to hook",
			})
			equal(w, "while it is put off", len(w.take("hook")), 0)
			r := w.receiver("hook")
			equal(w, "waiting", r.Waiting, 2)
			equal(w, "error", r.Error, "no route to hook")
			w.near("oldest", r.Oldest, w.Now())
			w.Advance(11 * time.Minute)
			again := w.take("hook")
			equal(w, "again", len(again), 1)
			equal(w, "the same", again[0].ID, head.ID)
			equal(w, "failed attempts", again[0].Attempts, 1)
			w.delivered(again[0])
			last := w.take("hook")
			equal(w, "last", len(last), 1)
			if last[0].ID == head.ID {
				w.Fatalf("%s came twice", head.ID)
			}
		}},
	}
}

func receiverRules() []Rule {
	return []Rule{
		{"R-348", "A receiver that nobody asks for is forgotten after a week, with its notifications and its queue; others stay.", "I-20", func(w *world) {
			w.register("gone", "hook")
			a, _ := w.firing("dead-letters", queue, 0)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			for range 2 {
				w.Advance(alert.ReceiverKept/2 + time.Hour)
				w.register("hook")
			}
			a.Version = 1
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			book := w.book()
			equal(w, "receivers", len(book.Receivers), 1)
			equal(w, "that stays", book.Receivers[0].Name, "hook")
			equal(w, "waiting", book.Receivers[0].Waiting, 2)
			_, err := alert.New(w.Other, alert.Options{Logger: slog.New(slog.DiscardHandler)}).Evaluate(w.ctx)
			w.ok(err)
			left, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: notify.Queue("gone"), Limit: 10})
			w.ok(err)
			equal(w, "left", len(left.Jobs), 0)
			queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			equal(w, "queues", len(queues), 1)
			equal(w, "the queue", queues[0].Name, notify.Queue("hook"))
		}},
		{"R-594", "The first notification makes the queue of its receiver, with settings for notifications, whatever queues the store admits; a queue of a receiver counts as none of the queues.", "I-1, I-20", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.limitQueues(func(p *admission.Policy) { p.Declared, p.MaxQueues = true, 1 })
			w.register("hook")
			a, _ := w.firing("dead-letters", queue, 0)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			made, err := w.Other.Queues(w.ctx, sluice.QueueFilter{Names: []string{notify.Queue("hook")}})
			w.ok(err)
			equal(w, "made", len(made), 1)
			equal(w, "settings", made[0].Settings, notify.Settings())
			equal(w, "queue of the receiver", w.receiver("hook").Queue, made[0].Name)
			equal(w, "queues", w.policy().Stored, 1)
			made[0].Settings.Backoff.Max = time.Hour
			saved, err := w.Store.SaveQueue(w.ctx, made[0], person("it is slow"))
			w.ok(err)
			a.Version = 1
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			kept, err := w.Other.Queues(w.ctx, sluice.QueueFilter{Names: []string{notify.Queue("hook")}})
			w.ok(err)
			equal(w, "settings that a person changed", kept[0].Settings, saved.Settings)
		}},
		{"R-595", "A notification that is given up is a dead letter that does not wait any more; requeued, it is claimed again, and until then it holds up no other.", "C-74, I-20", func(w *world) {
			w.register("hook")
			a, _ := w.firing("dead-letters", queue, 0)
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			a.Version = 1
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a)))
			first := w.take("hook")[0]
			w.done(sluice.Settlement{ID: first.ID, Token: first.Token, Holder: first.Holder, Event: sluice.EventBury, Error: "no route to hook"})
			equal(w, "waiting", w.receiver("hook").Waiting, 1)
			w.delivered(w.take("hook")[0])
			equal(w, "waiting", w.receiver("hook").Waiting, 0)
			errs, err := w.Other.Requeue(w.ctx, []sluice.ID{first.ID}, person("it is back"))
			w.ok(err)
			w.ok(errs[0])
			again := w.take("hook")
			equal(w, "again", len(again), 1)
			equal(w, "the same", again[0].ID, first.ID)
		}},
		{"R-349", "A depth has each figure at most its limit.", "C-65, D-58", func(w *world) {
			w.addMany(9)
			w.claim(4)
			got, err := w.Other.Depth(w.ctx, queue, 3)
			w.ok(err)
			equal(w, "ready", got.Ready, 3)
			equal(w, "claimed", got.Claimed, 3)
			whole, err := w.Other.Depth(w.ctx, queue, sluice.DepthLimit)
			w.ok(err)
			equal(w, "all ready", whole.Ready, 5)
			equal(w, "all claimed", whole.Claimed, 4)
		}},
	}
}
