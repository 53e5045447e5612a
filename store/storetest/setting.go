package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/tenancy"
)

func settingRules() []Rule {
	return []Rule{
		{"R-80", "A queue's settings read back as they were stored, each of them.", "I-15, D-36", func(w *world) {
			want := sluice.Settings{
				Paused: true, Lease: 90 * time.Second, Timeout: 5 * time.Minute, MaxAttempts: 9, MaxRecoveries: 2,
				Backoff:         sluice.Backoff{Base: 3 * time.Second, Factor: 1.5, Max: 2 * time.Minute, Jitter: 500 * time.Millisecond, FullJitter: true},
				RecoverInterval: 7 * time.Second, RecoverBatch: 55, KeepCompleted: 24 * time.Hour, KeepCancelled: 48 * time.Hour,
				KeepDead: 0, KeepResults: 3 * time.Hour, PayloadLimit: 4096, PayloadSchema: `{"type":"object"}`, Audit: sluice.AuditFull,
				Ageing: 0.5, Rate: sluice.RatePerSecond(0.25), Burst: 7, Concurrency: 12, PausedUntil: time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC),
				Batch: 500, Interval: 5 * time.Second, ClaimAhead: 3 * time.Minute, Jitter: 4 * time.Second,
				Engine: "temporal", RunNamespace: "billing", RunType: "PayOut", RunTaskQueue: "payments", RunTimeout: 10 * time.Minute,
				RunRef: "pay-{key}", RunResults: true, RetryRuns: true, FollowInterval: 5 * time.Second,
				MaxWaiting: 5000, TenantMaxWaiting: 60, Shed: true,
			}
			stored := w.save(func(s *sluice.Settings) { *s = want })
			equal(w, "version", stored.Version, 1)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				queues, err := store.Queues(w.ctx, sluice.QueueFilter{})
				w.ok(err)
				equal(w, "queues", len(queues), 1)
				equal(w, "settings", queues[0].Settings, want)
				equal(w, "changed by", queues[0].ChangedBy, "ada")
				equal(w, "reason", queues[0].Reason, "test")
			}
		}},
		{"R-81", "A change of settings must name the version it was made from; of many at once, one is stored.", "I-15", func(w *world) {
			q := w.save(func(s *sluice.Settings) {})
			for _, version := range []int64{0, q.Version + 1} {
				wrong := q
				wrong.Version = version
				_, err := w.Store.SaveQueue(w.ctx, wrong, person("test"))
				w.is(err, sluice.ErrConflict)
			}
			var wait sync.WaitGroup
			var stored atomic.Int32
			for n := range 8 {
				mine := q
				mine.Settings.MaxAttempts = n + 10
				store := w.Store
				if n%2 == 1 {
					store = w.Other
				}
				wait.Go(func() {
					if _, err := store.SaveQueue(w.ctx, mine, person("test")); err == nil {
						stored.Add(1)
					}
				})
			}
			wait.Wait()
			equal(w, "stored", int(stored.Load()), 1)
		}},
		{"R-82", "Each change of a queue, tenant or tier is told with who, why, before and after.", "I-4", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 4 })
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 5 })
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Limit: 10})
			w.ok(err)
			equal(w, "entries", len(entries), 2)
			before, after := sluice.DefaultSettings(), sluice.DefaultSettings()
			w.ok(json.Unmarshal(entries[0].Before, &before))
			w.ok(json.Unmarshal(entries[0].After, &after))
			equal(w, "before", before.MaxAttempts, 4)
			equal(w, "after", after.MaxAttempts, 5)
			equal(w, "actor", entries[0].Actor, "ada")
			equal(w, "the first has no before", len(bytes.TrimSpace(entries[1].Before)), 0)
		}},
		{"R-83", "Queues are listed by name.", "", func(w *world) {
			for _, name := range []string{"b", "c", "a"} {
				_, err := w.Store.SaveQueue(w.ctx, sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}, person("test"))
				w.ok(err)
			}
			queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			for i, name := range []string{"a", "b", "c"} {
				equal(w, "name", queues[i].Name, name)
			}
		}},
		{"R-520", "Queues are listed by names, by engines, after a name, or all of it, at most so many; names that are not stored are left out.", "", func(w *world) {
			for name, engine := range map[string]string{"a": "", "b": "temporal", "c": "temporal"} {
				settings := sluice.DefaultSettings()
				settings.Engine = engine
				if engine != "" {
					settings.RunType = "PayOut"
				}
				_, err := w.Store.SaveQueue(w.ctx, sluice.Queue{Name: name, Settings: settings}, person("test"))
				w.ok(err)
			}
			for want, filter := range map[string]sluice.QueueFilter{
				"a b c":  {},
				"a c":    {Names: []string{"c", "a", "c", "none"}},
				"":       {Names: []string{"none"}},
				"b c":    {Engines: []string{"temporal", "none"}},
				"b":      {Names: []string{"a", "b"}, Engines: []string{"temporal"}},
				"a b":    {Limit: 2},
				"a b c ": {Limit: -1},
				"c":      {After: "b"},
				"b c ":   {Engined: true},
				" c":     {Engined: true, After: "b", Limit: 2},
				"c ":     {Engines: []string{"temporal"}, After: "b", Limit: 1},
				"b ":     {Names: []string{"a", "b", "c"}, After: "a", Limit: 1},
				" ":      {After: "c", Limit: 1},
			} {
				queues, err := w.Other.Queues(w.ctx, filter)
				w.ok(err)
				var names []string
				for _, q := range queues {
					names = append(names, q.Name)
				}
				equal(w, "queues", strings.Join(names, " "), strings.TrimSpace(want))
			}
		}},
		{"R-521", "The store's clock is read also where no queue is stored, and it is the clock that queues are read with.", "", func(w *world) {
			before, err := w.Store.Now(w.ctx)
			w.ok(err)
			w.save(func(*sluice.Settings) {})
			queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			after, err := w.Other.Now(w.ctx)
			w.ok(err)
			equal(w, "in order", !queues[0].Now.Before(before) && !after.Before(queues[0].Now), true)
		}},
		{"R-84", "Tenants and tiers are stored, changed by version, looked up and listed by name.", "A-25, B-14", func(w *world) {
			_, err := tenancy.Given(w.Store).SaveTier(w.ctx, tenancy.Tier{Name: "PRO"}, person("test"))
			w.ok(err)
			_, err = tenancy.Given(w.Store).SaveTier(w.ctx, tenancy.Tier{Name: "PRO"}, person("test"))
			w.is(err, sluice.ErrConflict)
			_, err = tenancy.Given(w.Store).SaveTier(w.ctx, tenancy.Tier{Name: "FREE"}, person("test"))
			w.ok(err)
			tiers, err := tenancy.Given(w.Store).Tiers(w.ctx)
			w.ok(err)
			equal(w, "tiers", len(tiers), 2)
			equal(w, "first", tiers[0].Name, "FREE")

			_, err = tenancy.Given(w.Store).Tenant(w.ctx, "acme")
			w.is(err, sluice.ErrNotFound)
			for _, name := range []string{"globex", "acme", "initech"} {
				_, err = tenancy.Given(w.Store).SaveTenant(w.ctx, tenancy.Tenant{Name: name, Tier: "FREE"}, person("test"))
				w.ok(err)
			}
			acme, err := tenancy.Given(w.Store).Tenant(w.ctx, "acme")
			w.ok(err)
			acme.Tier = "PRO"
			saved, err := tenancy.Given(w.Store).SaveTenant(w.ctx, acme, person("upgrade"))
			w.ok(err)
			equal(w, "version", saved.Version, 2)
			_, err = tenancy.Given(w.Store).SaveTenant(w.ctx, acme, person("upgrade"))
			w.is(err, sluice.ErrConflict)
			page, err := tenancy.Given(w.Other).Tenants(w.ctx, "acme", 1)
			w.ok(err)
			equal(w, "page", len(page), 1)
			equal(w, "next", page[0].Name, "globex")
			all, err := tenancy.Given(w.Store).Tenants(w.ctx, "", 10)
			w.ok(err)
			equal(w, "tier", all[0].Tier, "PRO")
		}},
	}
}
