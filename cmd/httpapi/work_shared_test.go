package httpapi_test

import (
	"fmt"
	"testing"

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
