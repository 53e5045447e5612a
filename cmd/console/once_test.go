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

// TestARequestThatIsSentAgainDoesNothing: somebody keeps the request of a dialog, and sends it after others have acted.
func TestARequestThatIsSentAgainDoesNothing(t *testing.T) {
	t.Parallel()
	early := sluice.NewID().String()
	s := open(t, access.RoleOperator, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	change := func(id, rate string) (string, int) {
		return s.do("set-setting", url.Values{"queue": {"mail"}, "setting": {"rate"}, "value": {rate}, "act_id": {id}}, nil)
	}
	first := sluice.NewID().String()
	want, status := change(first, "5/s")
	if status != http.StatusNoContent {
		t.Fatalf("got %d %s", status, want)
	}
	if _, status = change(sluice.NewID().String(), "9/s"); status != http.StatusNoContent {
		t.Fatalf("the second change: %d", status)
	}
	if again, status := change(first, "5/s"); again != want || status != http.StatusNoContent {
		t.Errorf("sent again: %d %s, want the first answer, %s", status, again, want)
	}
	late := sluice.NewID()
	late[0]++
	for id, why := range map[string]string{"": "comes from no dialog", "act": "comes from no dialog", early: "the server has started anew", late.String(): "by another clock"} {
		if text, _ := change(id, "5/s"); !strings.Contains(text, why) || strings.Contains(text, `name="act_id" value="`+early) {
			t.Errorf("ID %q: got %s, want: %s, and an ID for the next time", id, text, why)
		}
	}
	s.has("/queues/mail", "<strong>9/s</strong>")
}
