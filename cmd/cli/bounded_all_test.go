package cli_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
)

// actsOnAll lists the acts with --all, in the order in which the test tries them. Each acts on jobs that begin in state
// of.
var actsOnAll = []struct {
	act string
	of  sluice.State
	// first is an act that an admin does on all jobs before. Empty: nothing needs to be prepared.
	first string
}{
	{"hold", sluice.StateQueued, ""},
	{"release", sluice.StateQueued, "hold"},
	{"reschedule --delay 2h", sluice.StateQueued, ""},
	{"edit --priority 2", sluice.StateQueued, ""},
	{"run-now", sluice.StateQueued, "reschedule --delay 3h"},
	{"cancel", sluice.StateQueued, ""},
	{"requeue --state cancelled", sluice.StateQueued, "cancel"},
	{"retry", sluice.StateDead, ""},
	{"requeue", sluice.StateDead, ""},
	{"dead requeue", sluice.StateDead, ""},
	{"dead redrive", sluice.StateDead, ""},
	{"dead delete", sluice.StateDead, ""},
	{"resolve --completed", sluice.StateUncertain, ""},
}

// TestActsOnAllTouchNoMoreThanTheTokenMay acts on all jobs with tokens that are bounded to a tenant, a queue, or both.
func TestActsOnAllTouchNoMoreThanTheTokenMay(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	admin := secret.FindString(run(t, db, "tokens", "create", "boss", "--role", "admin"))
	server := serve(t, db, "--login")
	server.becomes(t, 200, "upkeep")
	jobs := &docRun{scene: &scene{T: t, logger: slog.New(slog.DiscardHandler), db: db}}
	jobs.open()
	for name, bounds := range map[string][]string{"tenant": {"--tenant", "acme"}, "queue": {"--queue", "mail*"}, "both": {"--tenant", "ac*", "--queue", "mail*"}} {
		token := secret.FindString(run(t, server.url, append([]string{"tokens", "create", name, "--role", "operator", "--token", admin}, bounds...)...))
		for n, c := range actsOnAll {
			mail, sms := fmt.Sprintf("mail-%s-%d", name, n), fmt.Sprintf("sms-%s-%d", name, n)
			known := make(map[sluice.ID]bool)
			for _, queue := range []string{mail, sms} {
				jobs.queue(queue, func(s *sluice.Settings) {
					if c.of == sluice.StateUncertain {
						s.Engine = "temporal"
					}
				})
				for _, tenant := range []string{"acme", "globex", ""} {
					known[jobs.jobOf(queue, tenant, c.of)] = (name == "queue" || tenant == "acme") && (name == "tenant" || queue == mail)
				}
			}
			act := func(token, act string) {
				line := strings.Fields(act)
				if act != "dead redrive" {
					line = append(line, "--all")
				}
				run(t, server.url, append(line, "--where", "queue:"+mail+","+sms, "--reason", "all", "--token", token)...)
			}
			if c.first != "" {
				act(admin, c.first)
			}
			act(token, c.act)
			for id, known := range known {
				if touched := jobs.touched(id, "token "+name); touched != known {
					t.Errorf("`%s` by a token for %v touched a job: %t, want %t", c.act, bounds, touched, known)
				}
				if c.first != "" && !jobs.touched(id, "token boss") {
					t.Errorf("`%s` by an admin did not touch a job", c.first)
				}
			}
		}
	}
}

// touched reports whether a token has acted on a job.
func (r *docRun) touched(id sluice.ID, by string) bool {
	r.Helper()
	entries, err := r.store.Audit(r.Context(), sluice.AuditFilter{JobID: id, Limit: 100})
	r.ok(err)
	return slices.ContainsFunc(entries, func(e sluice.AuditEntry) bool { return strings.HasSuffix(e.Actor, " by "+by) })
}
