package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

func statRules() []Rule {
	return []Rule{
		{"R-400", "What holders counted is listed by slot, merged over holders, the oldest slot first and then by queue; every figure and every time comes back.", "C-65, C-68", func(w *world) {
			base := w.base()
			first, second := w.figures(base, queue, 100), w.figures(base.Add(stat.Fine), queue, 200)
			other := w.figures(base.Add(stat.Fine), "mail", 300)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{second, other, first}))
			w.lists("of one holder", stat.Filter{Every: stat.Fine}, first, other, second)
			w.ok(stat.Given(w.Other).AddStats(w.ctx, holder(2), []stat.Stat{w.figures(base, queue, 1000)}))
			both := merged(w.figures(base, queue, 1000), first)
			w.lists("of both", stat.Filter{Every: stat.Fine}, both, other, second)
		}},
		{"R-401", "A slot that a holder sends again changes nothing, before it is folded and after; nor does one that is not later than another that the holder has sent.", "I-20", func(w *world) {
			base := w.base()
			s, next := w.figures(base, queue, 1), w.figures(base.Add(stat.Fine), "mail", 2)
			for range 2 {
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{s, next}))
			}
			w.lists("when it is sent twice", stat.Filter{Every: stat.Fine}, s, next)
			w.fold()
			w.ok(stat.Given(w.Other).AddStats(w.ctx, holder(1), []stat.Stat{s, next}))
			w.ok(stat.Given(w.Other).AddStats(w.ctx, holder(1), []stat.Stat{s}))
			w.lists("when it was folded", stat.Filter{Every: stat.Fine}, s, next)
			w.fold()
			w.lists("and again", stat.Filter{Every: stat.Fine}, s, next)
		}},
		{"R-402", "Folding keeps what is listed as it is, by ten seconds, by the minute and by the hour; what comes late is added.", "I-25", func(w *world) {
			base := w.base()
			minute, hour := w.addMinutes(base)
			check := func(when string) {
				w.lists(when, stat.Filter{Every: stat.Minute}, minute...)
				w.lists(when, stat.Filter{Every: stat.Hour}, hour)
			}
			check("before")
			fine, err := stat.Given(w.Store).Stats(w.ctx, w.all(stat.Filter{Every: stat.Fine}))
			w.ok(err)
			equal(w, "slots of ten seconds", len(fine), 4)
			w.fold()
			check("after")
			w.lists("after", stat.Filter{Every: stat.Fine}, fine...)
			late := w.figures(base.Add(stat.Minute), queue, 70)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, "late", []stat.Stat{late}))
			minute[1], hour = merged(minute[1], late), merged(hour, late)
			check("with a late one")
			w.fold()
			check("when that is folded")
			equal(w, "rows to fold when all are", w.foldOnce(w.Store, 100), 0)
		}},
		{"R-403", "A filter chooses slots of a queue, those that begin from an instant on and before another, and the oldest up to a limit.", "S-8", func(w *world) {
			base := w.base()
			var mine []stat.Stat
			for n := range 4 {
				at := base.Add(time.Duration(n) * stat.Minute)
				mine = append(mine, w.figures(at, queue, int64(n+1)))
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{mine[n], w.figures(at, "mail", 50)}))
			}
			for i := range mine {
				mine[i].Every = stat.Minute
			}
			check := func(when string) {
				minutes := stat.Filter{Queues: []string{queue}, Every: stat.Minute}
				w.lists(when, minutes, mine...)
				minutes.Limit = 3
				w.lists(when+", three", minutes, mine[:3]...)
				minutes.From, minutes.To, minutes.Limit = base.Add(stat.Minute), base.Add(3*stat.Minute), 10
				w.lists(when+", in between", minutes, mine[1:3]...)
				minutes.From, minutes.To = base.Add(time.Second), base.Add(2*stat.Minute+time.Second)
				w.lists(when+", at odd instants", minutes, mine[1:3]...)
				minutes.Queues = []string{"nobody"}
				w.lists(when+", of no queue", minutes)
				minutes.Queues = []string{"nobody", queue, "nobody.else"}
				w.lists(when+", of several queues", minutes, mine[1:3]...)
			}
			check("before")
			w.fold()
			check("after")
		}},
		{"R-404", "Slots of ten seconds are kept for two hours, minutes for two days, hours for ninety days, and then deleted, a limited number at a time.", "S-5", func(w *world) {
			base := w.base()
			for n := range 3 {
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{w.figures(base.Add(time.Duration(n)*stat.Minute), queue, 1)}))
			}
			w.fold()
			left := func(when string, fine, minutes, hours int) {
				for every, want := range map[time.Duration]int{stat.Fine: fine, stat.Minute: minutes, stat.Hour: hours} {
					found, err := stat.Given(w.Store).Stats(w.ctx, w.all(stat.Filter{Every: every}))
					w.ok(err)
					equal(w, fmt.Sprintf("slots of %s %s", every, when), len(found), want)
				}
			}
			left("at first", 3, 3, 1)
			w.Advance(3 * time.Hour)
			equal(w, "deleted by one call", w.foldOnce(w.Store, 2), 2)
			left("after one call", 1, 3, 1)
			w.fold()
			left("after three hours", 0, 3, 1)
			w.Advance(48 * time.Hour)
			w.fold()
			left("after two days", 0, 0, 1)
			w.Advance(90 * 24 * time.Hour)
			w.fold()
			left("after ninety days", 0, 0, 0)
		}},
		{"R-405", "A slot tells of tenants where that is asked for: the largest of it, once it is folded. One can be asked for by name.", "C-65", func(w *world) {
			base := w.base()
			name := func(n int) string { return fmt.Sprintf(`tenant "%02d" $.<x>`, n) }
			for h := range 2 {
				stats := []stat.Stat{w.figures(base, queue, 1000)}
				for n := range stat.MaxTenants + 5 {
					s := w.figures(base, queue, int64(n+1))
					s.Tenant = name(n)
					stats = append(stats, s)
				}
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(h), stats))
			}
			one := func(when string) {
				want := merged(w.figures(base, queue, 10), w.figures(base, queue, 10))
				want.Tenant = name(9)
				w.lists(when, stat.Filter{Every: stat.Fine, Tenant: name(9)}, want)
				w.lists(when, stat.Filter{Every: stat.Fine, Tenant: "nobody"})
			}
			one("before")
			w.fold()
			one("after")
			found, err := stat.Given(w.Other).Stats(w.ctx, w.all(stat.Filter{Every: stat.Minute, Tenants: true}))
			w.ok(err)
			equal(w, "slots", len(found), 1+stat.MaxTenants)
			equal(w, "the first is the queue's", found[0].Tenant, "")
			equal(w, "what is claimed in all", found[0].Counts.Claimed, 2*w.figures(base, queue, 1000).Counts.Claimed)
			equal(w, "the smallest that is told", found[1].Tenant, name(5))
			equal(w, "the largest", found[stat.MaxTenants].Tenant, name(stat.MaxTenants+4))
			w.lists("without tenants", stat.Filter{Every: stat.Minute}, found[0])
			w.lists("a small one", stat.Filter{Every: stat.Minute, Tenant: name(4)})
		}},
		{"R-406", "A slot that began more than two hours ago, or begins more than a minute from now, is left out, and so are no others with it; what is no slot is refused.", "I-26, S-8", func(w *world) {
			base := w.base()
			old, now, ahead := w.figures(base.Add(-3*time.Hour), queue, 1), w.figures(base, queue, 2), w.figures(base.Add(24*time.Hour), queue, 3)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{old, now, ahead}))
			w.lists("of the three", stat.Filter{Every: stat.Fine, To: w.Now().Add(48 * time.Hour)}, now)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{w.figures(base.Add(stat.Fine), queue, 4)}))
			found, err := stat.Given(w.Store).Stats(w.ctx, w.all(stat.Filter{Every: stat.Fine}))
			w.ok(err)
			equal(w, "slots when the holder has sent another", len(found), 2)
			w.is(stat.Given(w.Store).AddStats(w.ctx, "", []stat.Stat{now}), sluice.ErrInvalid)
			odd := now
			odd.At = odd.At.Add(time.Second)
			w.is(stat.Given(w.Store).AddStats(w.ctx, holder(2), []stat.Stat{odd}), sluice.ErrInvalid)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(2), nil))
		}},
		{"R-407", "Several that fold, add and list at once neither lose a count nor count one twice.", "I-25", func(w *world) {
			base := w.base()
			const holders, slots = 3, 12
			add := func(h int) {
				for n := range slots {
					s := w.figures(base.Add(time.Duration(n)*stat.Fine), queue, 1)
					if err := stat.Given(w.Store).AddStats(w.ctx, holder(h), []stat.Stat{s}); err != nil {
						w.Errorf("add: %v", err)
					}
				}
			}
			foldAndLook := func(store sluice.Store, limit int) {
				if _, err := stat.Given(store).FoldStats(w.ctx, limit); err != nil {
					w.Errorf("fold: %v", err)
				}
				found, err := stat.Given(store).Stats(w.ctx, w.all(stat.Filter{Every: stat.Hour}))
				if err != nil || len(found) > 1 || len(found) == 1 && found[0].Counts.Enqueued > 2*holders*slots {
					w.Errorf("listed %+v, %v", found, err)
				}
			}
			stores := []sluice.Store{w.Store, w.Other, w.Store, w.Other}
			var all sync.WaitGroup
			for h := range holders {
				all.Go(func() { add(h) })
			}
			for _, store := range stores {
				all.Go(func() {
					for range slots {
						foldAndLook(store, 1+rand.IntN(5))
					}
				})
			}
			all.Wait()
			for h := range holders {
				add(holders + h)
			}
			for _, store := range stores { // now all find the same to fold
				all.Go(func() { foldAndLook(store, 100) })
			}
			all.Wait()
			w.fold()
			for _, every := range []time.Duration{stat.Fine, stat.Minute, stat.Hour} {
				found, err := stat.Given(w.Other).Stats(w.ctx, w.all(stat.Filter{Every: every}))
				w.ok(err)
				enqueued, waits := int64(0), int64(0)
				for _, s := range found {
					enqueued, waits = enqueued+s.Counts.Enqueued, waits+s.Wait.Count()
				}
				equal(w, fmt.Sprintf("enqueued by slots of %s", every), enqueued, 2*holders*slots)
				equal(w, fmt.Sprintf("waits by slots of %s", every), waits, 2*holders*slots)
			}
		}},
		{"R-408", "A minute that is not over is listed before it is folded, and is not folded yet.", "C-65", func(w *world) {
			now := w.figures(w.Now().UTC().Add(30*time.Second).Truncate(stat.Fine), queue, 3)
			w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{now}))
			equal(w, "folded", w.foldOnce(w.Store, 100), 0)
			now.At, now.Every = now.At.Truncate(stat.Minute), stat.Minute
			w.lists("at once", stat.Filter{Every: stat.Minute}, now)
			w.Advance(time.Hour)
			equal(w, "folded when it is over", w.foldOnce(w.Other, 100), 1)
		}},
		{"R-409", "Of the levels of a slot the worst stays, and the looks at which a tenant was at its limit add up. A slot with a level and no move is listed only to who asks for it, before it is folded and after.", "C-65", func(w *world) {
			base := w.base()
			level := func(holder string, at time.Time, queue string, ready int64, oldest float64) {
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder, []stat.Stat{{Queue: queue, At: at, Every: stat.Fine, Level: &stat.Level{Ready: ready, OldestSeconds: oldest}}}))
			}
			level("a", base, "mail", 7, 30)
			level("b", base, "mail", 3, 90.5)
			level("a", base.Add(stat.Fine), "mail", 5, 0)
			level("a", base.Add(stat.Minute), queue, 1, 1)
			moved := stat.Stat{Queue: queue, At: base.Add(stat.Minute), Every: stat.Fine, Counts: stat.Counts{Claimed: 1}}
			w.ok(stat.Given(w.Other).AddStats(w.ctx, "c", []stat.Stat{moved}))
			moved.Every, moved.Level = stat.Minute, &stat.Level{Ready: 1, OldestSeconds: 1}
			still := stat.Stat{Queue: "mail", At: base, Every: stat.Minute, Level: &stat.Level{Ready: 7, OldestSeconds: 90.5}}
			full := stat.Stat{Queue: "mail", Tenant: "acme", At: base, Every: stat.Fine, Level: &stat.Level{Full: 1}}
			w.ok(stat.Given(w.Store).AddStats(w.ctx, "d", []stat.Stat{full}))
			full.At = base.Add(stat.Fine)
			w.ok(stat.Given(w.Other).AddStats(w.ctx, "e", []stat.Stat{full}))
			full.At, full.Every, full.Level = base, stat.Minute, &stat.Level{Full: 2}
			for _, when := range []string{"before", "after"} {
				w.lists(when+", of a tenant", stat.Filter{Every: stat.Minute, Tenant: "acme", Levels: true}, full)
				w.lists(when, stat.Filter{Every: stat.Minute, Limit: 1}, moved)
				w.lists(when+", with levels", stat.Filter{Every: stat.Minute, Levels: true}, still, moved)
				w.fold()
			}
			wrong := stat.Stat{Queue: queue, At: base, Every: stat.Fine, Level: &stat.Level{Ready: -1}}
			w.is(stat.Given(w.Store).AddStats(w.ctx, holder(1), []stat.Stat{wrong}), sluice.ErrInvalid)
		}},
	}
}

// base is the beginning of an hour whose first minutes are over, and lately enough.
func (w *world) base() time.Time { return w.Now().UTC().Add(-20 * time.Minute).Truncate(time.Hour) }

// figures is what happened in a slot of ten seconds: each figure is another multiple of n.
func (w *world) figures(at time.Time, queue string, n int64) stat.Stat {
	s := stat.Stat{Queue: queue, At: at, Every: stat.Fine}
	for i, figure := range s.Counts.Values() {
		*figure = int64(i+1) * n
	}
	s.Wait.Add(time.Duration(n) * time.Millisecond)
	s.Run.Add(time.Duration(n) * time.Second)
	s.Total.Add(time.Duration(n) * time.Minute)
	s.Total.Add(time.Hour)
	s.Level = &stat.Level{Ready: 1000 / n, OldestSeconds: float64(n) / 4}
	return s
}

// merged is the sum of two, in the slot of the first.
func merged(a, b stat.Stat) stat.Stat {
	sum := stat.Stat{Queue: a.Queue, Tenant: a.Tenant, At: a.At, Every: a.Every}
	sum.Merge(a)
	sum.Merge(b)
	return sum
}

// addMinutes adds four slots in two minutes, of two holders, and gives the minutes and the hour that they make.
func (w *world) addMinutes(base time.Time) (minutes []stat.Stat, hour stat.Stat) {
	w.Helper()
	hour = stat.Stat{Queue: queue, At: base, Every: stat.Hour}
	for m := range 2 {
		minute := stat.Stat{Queue: queue, At: base.Add(time.Duration(m) * stat.Minute), Every: stat.Minute}
		for n := range 2 {
			for h := range 2 {
				s := w.figures(minute.At.Add(time.Duration(n*5)*stat.Fine), queue, int64(1+h+10*n+100*m))
				w.ok(stat.Given(w.Store).AddStats(w.ctx, holder(h), []stat.Stat{s}))
				minute.Merge(s)
			}
		}
		minutes = append(minutes, minute)
		hour.Merge(minute)
	}
	return minutes, hour
}

// all fills in a window that nothing falls out of.
func (w *world) all(filter stat.Filter) stat.Filter {
	if filter.From.IsZero() {
		filter.From = w.Now().Add(-200 * 24 * time.Hour).Truncate(time.Hour)
	}
	if filter.To.IsZero() {
		filter.To = w.Now().Add(time.Minute)
	}
	if filter.Limit == 0 {
		filter.Limit = 1000
	}
	return filter
}

// lists makes sure of what another process lists.
func (w *world) lists(when string, filter stat.Filter, want ...stat.Stat) {
	w.Helper()
	got, err := stat.Given(w.Other).Stats(w.ctx, w.all(filter))
	w.ok(err)
	if slices.EqualFunc(got, want, stat.Stat.Equal) {
		return
	}
	w.Fatalf("slots of %s, %s:\n%s\nwant:\n%s", filter.Every, when, lines(got), lines(want))
}

func lines(stats []stat.Stat) string {
	var text strings.Builder
	for _, s := range stats {
		fmt.Fprintf(&text, "%+v\n", s)
	}
	return text.String()
}

// fold folds until there is nothing more to do.
func (w *world) fold() {
	w.Helper()
	for w.foldOnce(w.Store, 100) > 0 {
	}
}

func (w *world) foldOnce(store sluice.Store, limit int) int {
	w.Helper()
	n, err := stat.Given(store).FoldStats(w.ctx, limit)
	w.ok(err)
	return n
}
