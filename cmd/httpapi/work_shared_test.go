package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// TestSharedLimitsAreClosedByProofAlone closes what a job shares with a token that proves nothing, and with that of the job.
func TestSharedLimitsAreClosedByProofAlone(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		s.steps([]step{{"PATCH", "/limits/bank", `{"set":{"concurrency":"5"}}`, 200, nil}, {"PATCH", "/queues/mail/settings", `{"set":{"limits":"bank"}}`, 200, nil}})
		s.enqueue("mail", "")
		job := s.claimOne(ofMail)
		forged := job
		forged.Token = "00000000000000000000000000000001"
		pause := func(h held) step {
			return step{"POST", "/work/pause", `{"worker":"h:1:a","for":"36500d",` + h.named() + `}`, 200, nil}
		}
		refused := pause(forged)
		refused.status, refused.parts = 409, []string{"lost"}
		s.steps([]step{refused, {"GET", "/limits/bank", "", 200, []string{`"closed":false`}}, pause(job), {"GET", "/limits/bank", "", 200, []string{`"closed":true`}}})
		if code := s.settle(job, `"outcome":"complete"`); code != "" {
			s.Errorf("the job is not its worker's any more: %q", code)
		}
	})
}

// TestWhatIsSentAgainClosesNothingAgain repeats outcomes and a close, because their answers were lost. Meanwhile a person has
// opened what they closed.
func TestWhatIsSentAgainClosesNothingAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		s.steps([]step{{"PATCH", "/limits/bank", `{"set":{"concurrency":"5"}}`, 200, nil}, {"PATCH", "/queues/mail/settings", `{"set":{"limits":"bank"}}`, 200, nil}})
		s.enqueue("mail", "acme")
		s.enqueue("fax", "acme")
		mail, fax := s.claimOne(ofMail), s.claimOne(`"queues":["fax"]`)
		again := []string{"Idempotency-Key", sluice.NewID().String()}
		pause := step{"POST", "/work/pause", `{"worker":"h:1:a","for":"2h",` + mail.named() + `}`, 200, nil}
		settle := step{"POST", "/work/settle", fmt.Sprintf(`{"worker":"h:1:a","jobs":[{%s,"outcome":"rate_limited","delay":"1h"},{%s,"outcome":"rate_limited","delay":"1h"}]}`, mail.named(), fax.named()), 200, []string{`"done":2`}}
		closed, isOpen := step{"GET", "/limits/bank", "", 200, []string{`"closed":true`}}, step{"GET", "/limits/bank", "", 200, []string{`"closed":false`}}
		open, resume := step{"POST", "/limits/bank/open", `{}`, 200, nil}, step{"POST", "/tenants/acme/resume", `{"queue":"fax"}`, 200, nil}
		tenant := func(more string) step {
			return step{"GET", "/tenants/acme", "", 200, []string{`{"queue":"fax","tenant":"acme"` + more}}
		}
		s.steps([]step{pause}, again...)
		s.steps([]step{closed, open})
		s.steps([]step{pause}, again...)
		s.steps([]step{isOpen, settle, closed, tenant(`,"paused":true`), open, resume, settle, isOpen, tenant("}")})
	})
}

// TestALateRepetitionClosesNoLongerThanTheFirstOutcome repeats an outcome when its delay is over. At first, it changed
// nothing, because a person had closed the limit for longer; so no act of it is known.
func TestALateRepetitionClosesNoLongerThanTheFirstOutcome(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		s.steps([]step{{"PATCH", "/limits/bank", `{"set":{"concurrency":"5"}}`, 200, nil}, {"PATCH", "/queues/mail/settings", `{"set":{"limits":"bank"}}`, 200, nil}})
		s.enqueue("mail", "")
		mail := s.claimOne(ofMail)
		settle := step{"POST", "/work/settle", fmt.Sprintf(`{"worker":"h:1:a","jobs":[{%s,"outcome":"rate_limited","delay":"1s"}]}`, mail.named()), 200, []string{`"done":1`}}
		s.steps([]step{{"POST", "/limits/bank/close", `{"for":"2h","reason":"down"}`, 200, nil}, settle, {"POST", "/limits/bank/open", `{}`, 200, nil}})
		time.Sleep(1100 * time.Millisecond)
		s.steps([]step{settle, {"GET", "/limits/bank", "", 200, []string{`"closed":false`}}})
	})
}

// TestABoundedWorkerClosesSharedLimitsForAnHour closes what a job shares for longer than a caller with bounds may.
func TestABoundedWorkerClosesSharedLimitsForAnHour(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "a", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{"mail"}}})
	s.enqueue("mail", "")
	as := []string{"Authorization", "Bearer a"}
	type claimed struct{ Jobs []held }
	job := get[claimed](s, "POST", "/work/claim", `{"worker":"h:1:a","queues":["mail"]}`, as...).Jobs[0]
	s.steps([]step{
		{"POST", "/work/pause", `{"worker":"h:1:a","for":"61m",` + job.named() + `}`, 422, []string{"must be at most 1h"}},
		{"POST", "/work/pause", `{"worker":"h:1:a","for":"1h",` + job.named() + `}`, 200, nil},
		{"POST", "/work/settle", fmt.Sprintf(`{"worker":"h:1:a","jobs":[{%s,"outcome":"rate_limited","delay":"61m"}]}`, job.named()), 200, []string{`"done":0`, "must be at most 1h"}},
		{"POST", "/work/settle", fmt.Sprintf(`{"worker":"h:1:a","jobs":[{%s,"outcome":"rate_limited","delay":"1h"}]}`, job.named()), 200, []string{`"done":1`}},
	}, as...)
}
