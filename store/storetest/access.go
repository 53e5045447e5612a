package storetest

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
)

func accessRules() []Rule {
	return []Rule{
		{"R-930", "A token reads back as it was created, from every process, with a hash and never with its secret; tokens are listed by name, in pages; a taken name is a conflict.", "I-20", func(w *world) {
			token := access.Token{
				Name: "ci", Role: access.RoleProducer, ExpiresAt: w.Now().Add(time.Hour).UTC().Truncate(time.Microsecond),
				Bounds: access.Bounds{Queues: []string{"mail.*"}, Tenants: []string{"acme"}},
			}
			created, secret := w.token(token)
			got, err := access.Given(w.Other).AccessToken(w.ctx, "ci")
			w.ok(err)
			equal(w, "token", jsonText(w, got), jsonText(w, created))
			equal(w, "hash", len(got.Hash), 64)
			equal(w, "hash is no secret", got.Hash == secret, false)
			w.near("clock", got.Now, w.Now())
			w.token(access.Token{Name: "a", Role: access.RoleAdmin})
			page, err := access.Tokens(w.ctx, w.Store, "a", 1)
			w.ok(err)
			equal(w, "page", len(page), 1)
			equal(w, "page", page[0].Name, "ci")
			_, _, err = access.Create(w.ctx, w.Other, token, person("test"))
			w.is(err, sluice.ErrConflict)
			_, err = access.Given(w.Store).AccessToken(w.ctx, "b")
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-931", "The secret of a token names its caller until it expires or is revoked; after a rotation the old secret works for the overlap; each change is in the audit.", "I-20", func(w *world) {
			_, first := w.token(access.Token{Name: "ci", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{queue}}})
			caller, err := access.NewGate(w.Other).Caller(w.ctx, first)
			w.ok(err)
			equal(w, "caller", caller.Name+" "+string(caller.Role)+" "+caller.Queues[0], "token ci worker "+queue)
			_, second, err := access.Rotate(w.ctx, w.Store, "ci", time.Hour, person("test"))
			w.ok(err)
			for _, secret := range []string{first, second} {
				_, err := access.NewGate(w.Other).Caller(w.ctx, secret)
				w.ok(err)
			}
			_, third, err := access.Rotate(w.ctx, w.Other, "ci", 0, person("test"))
			w.ok(err)
			for _, secret := range []string{first, second, "sluice_x", "", third[1:]} {
				_, err := access.NewGate(w.Store).Caller(w.ctx, secret)
				w.is(err, access.ErrUnknown)
			}
			w.ok(access.Revoke(w.ctx, w.Store, "ci", person("test")))
			_, err = access.NewGate(w.Other).Caller(w.ctx, third)
			w.is(err, access.ErrUnknown)
			w.is(access.Revoke(w.ctx, w.Store, "ci", person("test")), sluice.ErrNotFound)
			_, ended := w.token(access.Token{Name: "old", Role: access.RoleWorker, ExpiresAt: w.Now().Add(-time.Second)})
			_, err = access.NewGate(w.Store).Caller(w.ctx, ended)
			w.is(err, access.ErrUnknown)
			entries, err := w.Other.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectToken, Name: "ci", Limit: 100})
			w.ok(err)
			equal(w, "audit entries", len(entries), 4)
			equal(w, "last event", entries[0].Event, audit.EventDelete)
		}},
		{"R-970", "The name of a token names its caller to a gate that has proof of the name, until the token expires or is revoked.", "I-20", func(w *world) {
			w.token(access.Token{Name: "ci", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{queue}}})
			caller, err := access.NewGate(w.Other).Named(w.ctx, "ci")
			w.ok(err)
			equal(w, "caller", caller.Name+" "+string(caller.Role)+" "+caller.Queues[0], "token ci worker "+queue)
			_, _, err = access.Rotate(w.ctx, w.Store, "ci", 0, person("test"))
			w.ok(err)
			_, err = access.NewGate(w.Store).Named(w.ctx, "ci")
			w.ok(err)
			w.token(access.Token{Name: "old", Role: access.RoleWorker, ExpiresAt: w.Now().Add(-time.Second)})
			w.ok(access.Revoke(w.ctx, w.Store, "ci", person("test")))
			for _, name := range []string{"ci", "old", "", "a\x00b", "\xff", "no such token"} {
				_, err := access.NewGate(w.Other).Named(w.ctx, name)
				w.is(err, access.ErrUnknown)
			}
		}},
		{"R-932", "The use of a token is noted, at most once a minute, and a change of the token keeps it.", "I-20", func(w *world) {
			_, secret := w.token(access.Token{Name: "ci", Role: access.RoleViewer})
			gate := access.NewGate(w.Store)
			_, err := gate.Caller(w.ctx, secret)
			w.ok(err)
			used, err := access.Given(w.Other).AccessToken(w.ctx, "ci")
			w.ok(err)
			w.near("used", used.UsedAt, w.Now())
			equal(w, "version", used.Version, 1)
			rotated, again, err := access.Rotate(w.ctx, w.Other, "ci", 0, person("test"))
			w.ok(err)
			equal(w, "used after a rotation", rotated.UsedAt, used.UsedAt)
			w.Advance(2 * time.Minute)
			_, err = gate.Caller(w.ctx, again)
			w.ok(err)
			used, err = access.Given(w.Other).AccessToken(w.ctx, "ci")
			w.ok(err)
			w.near("used again", used.UsedAt, w.Now())
			w.ok(access.Given(w.Store).UseAccessToken(w.ctx, "unknown"))
		}},
	}
}

// token creates a token, and returns its secret.
func (w *world) token(token access.Token) (access.Token, string) {
	w.Helper()
	created, secret, err := access.Create(w.ctx, w.Store, token, person("test"))
	w.ok(err)
	return created, secret
}
