package storetest

import (
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
)

func timeoutRules() []Rule {
	return []Rule{
		{"R-900", "Lookups, lists and claims bring the timeout of a job, whether it is stored alone, among others, with a key, or in an order.", "C-38", func(w *world) {
			want := make(map[sluice.ID]time.Duration)
			var batch []sluice.Insert
			for n, o := range []sluice.EnqueueOptions{
				{},
				{Timeout: time.Millisecond},
				{Timeout: 90 * time.Second},
				{Timeout: 30 * 24 * time.Hour},
				{Timeout: time.Minute, Key: "k"},
				{Timeout: time.Hour, OrderKey: "o"},
				{OrderKey: "p"},
				{Timeout: 2 * time.Hour, Tenant: "acme", Labels: map[string]string{"a": "b"}},
			} {
				o.ID = idOf(n + 1)
				want[o.ID] = o.Timeout
				batch = append(batch, insertOf(o))
				o.ID = idOf(n + 100)
				if o.Key != "" {
					o.Key = "alone"
				}
				if o.OrderKey != "" {
					o.OrderKey += "alone"
				}
				want[o.ID] = w.timeoutOf(w.add(o))
				equal(w, "timeout of a job stored alone", want[o.ID], o.Timeout)
			}
			w.receipts(batch...)
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 100})
			w.ok(err)
			equal(w, "listed", len(page.Jobs), len(want))
			for _, j := range page.Jobs {
				equal(w, "timeout in the list", j.Timeout, want[j.ID])
			}
			claims := w.claim(len(want))
			equal(w, "claimed", len(claims), len(want))
			for _, c := range claims {
				equal(w, "timeout in the claim", c.Timeout, want[c.ID])
				w.done(by(sluice.EventComplete, c))
				equal(w, "timeout in the history", w.timeoutOf(c.ID), want[c.ID])
			}
		}},
		{"R-901", "An edit gives a waiting job a timeout or takes it away; the audit has both.", "C-9, C-38", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Timeout: time.Minute, Delay: time.Hour})
			hour, none := time.Hour, time.Duration(0)
			w.ok(w.edit(w.job(id), edit.Change{Timeout: &hour}, person("a slow bank")))
			equal(w, "timeout", w.timeoutOf(id), hour)
			e := w.told(id, audit.EventEdit)
			equal(w, "before and after", strings.ReplaceAll(string(e.Before)+string(e.After), " ", ""), `{"timeout":"1m"}{"timeout":"1h"}`)
			w.ok(w.edit(w.job(id), edit.Change{Priority: 2}, person("urgent")))
			equal(w, "timeout after another edit", w.timeoutOf(id), hour)
			w.ok(w.edit(w.job(id), edit.Change{Timeout: &none}, person("as the queue says")))
			equal(w, "timeout", w.timeoutOf(id), none)
			tooLong := 31 * 24 * time.Hour
			w.is(w.edit(w.job(id), edit.Change{Timeout: &tooLong}, person("for ever")), sluice.ErrInvalid)
		}},
	}
}

func (w *world) timeoutOf(id sluice.ID) time.Duration {
	w.Helper()
	return w.job(id).Timeout
}
