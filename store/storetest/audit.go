package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

func auditRules() []Rule {
	return []Rule{
		{"R-500", "Every entry of the audit is sealed once, in order, by level; the chain is the same to every process, and it is as it was sealed.", "I-23", func(w *world) {
			w.auditWorld(2)
			report := w.verified(w.other())
			equal(w, "entries", report.Entries, int64(len(w.wholeAudit())))
			equal(w, "left", report.Unsealed, 0)
			equal(w, "seals", report.Seals, 2)
			equal(w, "full", report.Last.Full.Entries > 0 && report.Last.Notable.Entries > 0, true)
			w.note(1)
			equal(w, "not sealed yet", w.verified(w.chain()).Unsealed, 1)
			w.sealAll()
		}},
		{"R-501", "Of two who seal at once one makes each seal, and nothing is sealed twice or left out.", "I-23, I-25", func(w *world) {
			var all sync.WaitGroup
			for n := range 4 {
				store := w.chain()
				if n%2 == 1 {
					store = w.other()
				}
				all.Go(func() {
					for range 5 {
						w.note(1)
						if _, err := audit.SealSettled(w.ctx, store, audit.SealOptions{}); err != nil {
							w.Errorf("seal: %v", err)
						}
					}
				})
			}
			all.Wait()
			w.sealAll()
			equal(w, "entries", w.verified(w.chain()).Entries, 20)
		}},
		{"R-502", "Retention deletes the entries of a level that were sealed longer ago than they are kept, and no others; the chain stays whole, and the audit tells of it.", "I-23", func(w *world) {
			w.auditWorld(2)
			before := len(w.wholeAudit())
			full := w.verified(w.chain()).Last.Full.Entries
			w.keep(audit.Full, time.Millisecond)
			time.Sleep(2 * time.Millisecond)
			pruned, err := audit.Prune(w.ctx, w.chain(), "upkeep")
			w.ok(err)
			equal(w, "deleted", pruned.Entries[audit.Full] >= full && pruned.Entries[audit.Notable] == 0, true)
			equal(w, "left", len(w.wholeAudit()), before-int(pruned.Entries[audit.Full])+2) // what is kept how long, and what was deleted
			w.sealAll()
			report := w.verified(w.other())
			equal(w, "told gone", report.Gone[audit.Full], pruned.Entries[audit.Full])
			equal(w, "entries", report.Entries, int64(len(w.wholeAudit())))
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectAudit, Name: "keep", Limit: 1})
			w.ok(err)
			equal(w, "told", told[0].Event, audit.EventPrune)
			equal(w, "by", told[0].Actor, "upkeep")
		}},
		{"R-503", "When all entries of a seal are gone, the seals before it go too, and the rest of the chain can be verified.", "I-23", func(w *world) {
			w.auditWorld(3)
			w.keep(audit.Full, time.Millisecond)
			w.keep(audit.Notable, time.Millisecond)
			time.Sleep(2 * time.Millisecond)
			_, err := audit.Prune(w.ctx, w.chain(), "upkeep")
			w.ok(err)
			seals, err := w.chain().AuditSeals(w.ctx, 0, 10)
			w.ok(err)
			equal(w, "the first seals are gone", seals[0].No > 1, true)
			body, err := w.chain().AuditBatch(w.ctx, seals[0].No, audit.Notable)
			w.ok(err)
			equal(w, "batch", len(body), 0)
			w.note(3)
			w.sealAll()
			equal(w, "first", w.verified(w.other()).First, seals[0].No)
		}},
		{"R-504", "A head that was told stays in the chain; one of another chain, or beyond the end, is found out.", "I-23", func(w *world) {
			w.auditWorld(1)
			head := w.verified(w.chain()).Last.Head()
			w.note(1)
			w.sealAll()
			report, err := audit.Verify(w.ctx, w.chain(), audit.VerifyOptions{Heads: []audit.Head{head}})
			w.ok(err)
			equal(w, "fault", report.Fault == nil, true)
			equal(w, "found", len(report.Heads), 1)
			wrong, later := head, head
			wrong.Hash[0]++
			later.No += 100
			for _, h := range []audit.Head{wrong, later} {
				report, err := audit.Verify(w.ctx, w.chain(), audit.VerifyOptions{Heads: []audit.Head{h}})
				w.ok(err)
				equal(w, "fault of "+h.String(), report.Fault != nil && report.Fault.Kind == audit.Cut, true)
			}
		}},
		{"R-505", "How long the audit is kept is in the chain, counts from then on, and is audited with who and why, once per act.", "I-23", func(w *world) {
			none, err := w.chain().LastAuditSeal(w.ctx)
			w.ok(err)
			equal(w, "default", none.Keeps(audit.Full), audit.DefaultKeepFull)
			w.keep(audit.Full, 90*24*time.Hour)
			w.keep(audit.Notable, 0)
			last, err := w.other().LastAuditSeal(w.ctx)
			w.ok(err)
			equal(w, "full", last.Keeps(audit.Full), 90*24*time.Hour)
			equal(w, "notable", last.Keeps(audit.Notable), 0)
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectAudit, Name: "keep", Limit: 2})
			w.ok(err)
			equal(w, "by", told[1].Actor+" "+told[1].Reason, "ada to see it")
			var after map[string]string
			w.ok(json.Unmarshal(told[1].After, &after))
			equal(w, "after", after["notable"]+" "+after["full"], "17520h0m0s 2160h0m0s")
			act := sluice.Act{By: "ada", Reason: "a year", ID: sluice.NewID()}
			for _, chain := range []audit.Store{w.chain(), w.other()} {
				last, err = audit.Keep(w.ctx, chain, map[audit.Level]time.Duration{audit.Full: 365 * 24 * time.Hour}, act)
				w.ok(err)
			}
			equal(w, "full, when the act was sent again", last.Keeps(audit.Full), 365*24*time.Hour)
			told, err = w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectAudit, Name: "keep", Limit: 10})
			w.ok(err)
			equal(w, "changes", len(told), 3)
		}},
		{"R-1230", "A seal of the future, as of a clock that was set back since, holds up no later seal.", "[the audit](guide/audit.md)", func(w *world) {
			now, err := w.Store.Now(w.ctx)
			w.ok(err)
			ahead, err := audit.Successor(audit.Seal{}, "a clock that was ahead", now.Add(365*24*time.Hour), sluice.Act{By: "ada"})
			w.ok(err)
			added, err := w.chain().AddAuditSeal(w.ctx, ahead)
			w.ok(err)
			equal(w, "added", added, true)
			w.note(1)
			since, now, err := audit.Waiting(w.ctx, w.chain())
			w.ok(err)
			equal(w, "told since when an entry waits", !since.IsZero() && !since.After(now), true)
			for seals := range 2 {
				sealed, err := audit.SealSettled(w.ctx, w.chain(), audit.SealOptions{Patience: time.Minute})
				w.ok(err)
				equal(w, "seals of the present", sealed.Seals, int64(1-seals))
				w.note(1)
			}
			equal(w, "wait for the patience", w.verified(w.other()).Unsealed, 2)
		}},
	}
}

func (w *world) chain() audit.Store { return w.chainOf(w.Store) }

func (w *world) other() audit.Store { return w.chainOf(w.Other) }

func (w *world) chainOf(store sluice.Store) audit.Store {
	w.Helper()
	chain, err := audit.Of(store)
	if err != nil {
		w.Fatal(err)
	}
	return chain
}

// note adds entries of the level notable.
func (w *world) note(n int) {
	w.Helper()
	entries := make([]sluice.AuditEntry, n)
	for i := range entries {
		entries[i] = sluice.AuditEntry{
			Object: audit.ObjectQueue, Name: queue, Event: audit.EventBatch, Actor: holder(i), Reason: fmt.Sprint("ünïcode ", i),
			Before: json.RawMessage(`{"b": 1.50, "a": [null]}`), ActID: sluice.NewID(),
		}
	}
	w.ok(w.Store.AppendAudit(w.ctx, entries))
}

// auditWorld makes seals over entries of both levels.
func (w *world) auditWorld(seals int) {
	w.Helper()
	w.save(func(s *sluice.Settings) { s.Audit = sluice.AuditFull })
	for range seals {
		in := insertOf(sluice.EnqueueOptions{})
		in.AuditFull = true
		w.receipts(in)
		w.done(by(sluice.EventComplete, w.claimOne()))
		w.note(2)
		w.sealAll()
	}
}

// sealAll seals what is settled.
func (w *world) sealAll() {
	w.Helper()
	_, err := audit.SealSettled(w.ctx, w.chain(), audit.SealOptions{})
	w.ok(err)
}

// verified makes sure that nothing is wrong.
func (w *world) verified(chain audit.Store) audit.Report {
	w.Helper()
	report, err := audit.Verify(w.ctx, chain, audit.VerifyOptions{})
	w.ok(err)
	if report.Fault != nil {
		w.Fatalf("the audit is %s at entry %d: %s", report.Fault.Kind, report.Fault.Seq, report.Fault.Summary)
	}
	return report
}

func (w *world) keep(level audit.Level, d time.Duration) {
	w.Helper()
	_, err := audit.Keep(w.ctx, w.chain(), map[audit.Level]time.Duration{level: d}, sluice.Act{By: "ada", Reason: "to see it"})
	w.ok(err)
}

func (w *world) wholeAudit() []sluice.AuditEntry {
	w.Helper()
	entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Limit: 10_000})
	w.ok(err)
	return entries
}
