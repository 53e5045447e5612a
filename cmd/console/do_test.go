package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// TestARequestThatIsSentAgainDoesNothing sends the request of a dialog again after another change.
func TestARequestThatIsSentAgainDoesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	change := func(id, rate string) (string, int) {
		return s.do("set-setting", url.Values{"queue": {"mail"}, "setting": {"rate"}, "value": {rate}, "act_id": {id}}, nil)
	}
	first := sluice.NewID().String()
	for _, id := range []string{first, sluice.NewID().String()} {
		if text, status := change(id, "5/s"); status != http.StatusNoContent {
			t.Fatalf("got %d %s", status, text)
		}
	}
	if _, status := change(sluice.NewID().String(), "7/s"); status != http.StatusNoContent {
		t.Errorf("the last change: %d", status)
	}
	if text, status := change(first, "5/s"); status != http.StatusNoContent {
		t.Errorf("sent again: %d %s", status, text)
	}
	late := sluice.NewID()
	late[0]++
	for _, id := range []string{"", "act", late.String()} {
		if text, _ := change(id, "5/s"); !strings.Contains(text, "opened too long ago") || strings.Contains(text, `name="act_id" value="`+id+`"`) {
			t.Errorf("ID %q: got %s, want a refusal, and an ID for the next time", id, text)
		}
	}
	s.has("/queues/mail", "<strong>7/s</strong>")
}
