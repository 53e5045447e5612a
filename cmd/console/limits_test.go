package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

func TestSharedLimitsAreShownAndChanged(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.has("/limits", "No limit is shared")
	for _, one := range []struct {
		act    string
		values url.Values
		says   []string
	}{
		{"new-limit", url.Values{"limit": {"bank"}, "rate": {"500/5s"}, "concurrency": {"20"}}, []string{"500/5s", "0 of 20", "Delete"}},
		{"set-limit", url.Values{"limit": {"bank"}, "concurrency": {"200"}}, []string{"0 of 200"}},
		{"undo-limit", url.Values{"limit": {"bank"}}, []string{"0 of 20"}},
		{"close-limit", url.Values{"limit": {"bank"}, "for": {"10m"}, "reason": {"bank is down"}}, []string{"closed, opens", "bank is down"}},
		{"open-limit", url.Values{"limit": {"bank"}}, []string{"-closed until"}},
		{"new-limit", url.Values{"limit": {"host"}, "per": {"key"}, "concurrency": {"2"}}, []string{"per key", "0 of 2 each"}},
		{"close-key", url.Values{"limit": {"host"}, "key": {"a.example"}, "for": {"10m"}, "reason": {"it answers 429"}}, []string{"a.example", "closed, opens"}},
		{"open-key", url.Values{"limit": {"host"}, "key": {"a.example"}}, []string{"-closed until"}},
		{"delete-limit", url.Values{"limit": {"host"}}, []string{`-id="limit-host"`}},
	} {
		if answer, status := s.do(one.act, one.values, nil); status != http.StatusNoContent {
			t.Fatalf("%s: got %d %s, want 204", one.act, status, answer)
		}
		s.has("/limits", one.says...)
	}
	if answer, status := s.do("set-setting", url.Values{"queue": {"payments"}, "setting": {"limits"}, "value": {"bank"}}, nil); status != http.StatusNoContent {
		t.Fatalf("set-setting: got %d %s, want 204", status, answer)
	}
	s.has("/limits", `href="/queues/payments"`, "-/do/delete-limit")
	if answer, _ := s.do("close-limit", url.Values{"limit": {"bank"}}, nil); !strings.Contains(answer, "reason must be given") {
		t.Errorf("a close without a reason: %s", answer)
	}
	dialog, _ := s.page("/do/close-key?limit=host&key=a.example&for=10m")
	if !strings.Contains(dialog, "/limits/host/close?key=a.example") || !strings.Contains(dialog, "sluice limits close host --key=a.example --for=10m") {
		t.Errorf("the dialog lacks the call or the command: %s", dialog)
	}
}
