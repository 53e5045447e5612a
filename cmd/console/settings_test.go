package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
)

// TestARedactionIsTriedWithoutAReason shows the text that the server would keep of an error. The act needs no reason
// even in production, because it changes nothing.
func TestARedactionIsTriedWithoutAReason(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{Environment: "production"})
	s.has("/settings", "Test the redaction", "<code>--scrub-without</code>")
	if dialog, _ := s.page("/do/test-redaction"); !strings.Contains(dialog, `name="text"`) || strings.Contains(dialog, `name="reason"`) {
		t.Errorf("the dialog asks for the wrong things: %s", dialog)
	}
	for text, want := range map[string]string{"no answer for ada@example.com": "The server keeps: no answer for [redacted:email]", "no answer": "finds no secret in it"} {
		if answer, status := s.do("test-redaction", url.Values{"text": {text}}, nil); status != http.StatusNoContent || !strings.Contains(answer, want) || strings.Contains(answer, "ada@") {
			t.Errorf("%q: %d %s, want %q", text, status, answer, want)
		}
	}
}
