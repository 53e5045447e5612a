package httpapi_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
)

// TestAQueueOfAnEngineKeepsNoJobsOfOthers claims from several queues, of which one is given to an engine. It has a job that is due.
func TestAQueueOfAnEngineKeepsNoJobsOfOthers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		settings := sluice.DefaultSettings()
		settings.Engine, settings.RunType, settings.RunTaskQueue = "temporal", "Send", "send"
		must(s.client.EnsureQueue(s.Context(), "a-runs", settings, sluice.Act{By: "test"}))
		for _, wait := range []string{"", `,"wait":"60s"`, `,"wait":"60s","token":"0123456789abcdef","again":true`} {
			s.enqueue("a-runs", "")
			s.enqueue("mail", "")
			if job := s.claimOne(`"queues":["a-runs","mail"]` + wait); job.Queue != "mail" {
				s.Errorf("%s: claimed %+v, want the job of mail", wait, job)
			}
		}
		for _, wait := range []string{"", `,"wait":"60s"`} {
			if r := s.ask("POST", "/work/claim", `{"worker":"h:1:a","queues":["a-runs"]`+wait+`}`); r.status != 409 || !strings.Contains(r.text, "other_runner") {
				s.Errorf("a claim of the engine's queue alone: %d %s", r.status, r.text)
			}
		}
	})
}
